#include "servers/python_env.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/hashing.hpp"
#include "base/shell_quote.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "config/project_files.hpp"
#include "server/agent_text.hpp"
#include "servers/package_files.hpp"
#include "servers/shell_text.hpp"

namespace remote::servers {
namespace {

constexpr const char* own_conda = "~/miniconda";
constexpr const char* default_conda_url =
    "https://repo.anaconda.com/miniconda/Miniconda3-latest-Linux-{arch}.sh";

std::string folder_in(const std::string& parent, const std::string& name) {
  return parent.ends_with('/') ? parent + name : parent + "/" + name;
}

std::string conda_root(const config::Config& config) {
  return config.python.conda.empty() ? own_conda : config.python.conda;
}

bool is_absolute(const std::string& path) {
  return path.starts_with('/') || path.starts_with("~/");
}

std::string conda_environment_name(const config::Config& config) {
  return config.python.environment.empty() ? config.name + "_env" : config.python.environment;
}

// Where the environment is created if the user's own installation of conda does not accept it: in conda's
// default place.
std::string other_environment(const config::Config& config) {
  return config.python.conda.empty() || is_absolute(config.python.environment) ||
                 config.python.environment == "base"
             ? std::string()
             : "~/.conda/envs/" + conda_environment_name(config);
}

std::string project_key(const std::string& project) {
  return sha256_hex(project).substr(0, 12);
}

// Whether remote creates the environment, so that it has the same packages on all servers.
bool is_isolated(const config::Config& config) {
  const config::Python& python = config.python;
  return python.manager != config::PythonManager::system && !is_absolute(python.environment) &&
         (python.conda.empty() || python.environment != "base");
}

// Whether the project itself can be installed.
bool describes_a_package(const std::string& pyproject) {
  for (const std::string& raw : split(pyproject, '\n')) {
    const std::string_view line = trim(raw);
    if (line.starts_with("[project]") || line.starts_with("[build-system]") ||
        line.starts_with("[tool.poetry]")) {
      return true;
    }
  }
  return false;
}

std::string digest_of(const config::Config& config, PackageSource source,
                      const std::set<std::string>& sources) {
  const config::Python& python = config.python;
  Sha256 digest;
  digest.add_field("packages 2").add_field(wire::name_of_value(source)).add_field(setup_digest(config));
  if (source == PackageSource::none) {
    return digest.hex();  // pip's options have no effect
  }
  for (const std::string& line : sources) {
    digest.add_field(line);
  }
  digest.add_field(python.index_url.value_or("")).add_field(python.no_index ? "no index" : "");
  for (const std::string& url : python.extra_index_urls) {
    digest.add_field("extra").add_field(url);
  }
  for (const std::string& place : python.find_links) {
    digest.add_field("links").add_field(place);
  }
  for (const std::string& file : python.constraints) {
    digest.add_field("constraint").add_field(file);
  }
  return digest.hex();
}

std::vector<std::string> places_on(const config::Config& config, const config::Server& server,
                                   const PackageSources& sources) {
  std::vector<std::string> places;
  for (const std::string& place : sources.server_places) {
    places.push_back(is_absolute(place) ? place : folder_in(config.project_path_on(server), place));
  }
  return places;
}

}  // namespace

std::string environment_folder(const config::Config& config, const config::Server& server) {
  const config::Python& python = config.python;
  const bool absolute = is_absolute(python.environment);
  switch (python.manager) {
    case config::PythonManager::conda:
      if (absolute) {
        return python.environment;
      }
      if (!python.conda.empty() && python.environment == "base") {
        return python.conda;
      }
      return folder_in(conda_root(config), "envs/" + conda_environment_name(config));
    case config::PythonManager::venv:
    case config::PythonManager::uv:
      if (absolute) {
        return python.environment;
      }
      return folder_in(config.project_path_on(server),
                       python.environment.empty() ? ".venv" : python.environment);
    case config::PythonManager::system:
      break;
  }
  return folder_in(scripts_folder(config, server), "system");
}

std::string scripts_folder(const config::Config& config, const config::Server& server) {
  return folder_in(config.project_path_on(server), config.remote_scripts_folder_name);
}

std::string prologue(const config::Config& config, const config::Server& server) {
  const std::string& text = config.prologue_on(server);
  if (text.empty()) {
    return {};
  }
  return assign("__prologue", text) + assign_path("__project", config.project_path_on(server)) +
         source_file("lib/prologue.sh");
}

std::string inline_files(std::string text) {
  for (const char* name : {"activate.sh", "prologue.sh"}) {
    text = replace_all(std::move(text), source_file(fmt::format("lib/{}", name)),
                       std::string(server::agent_text(name)) + "\n");
  }
  return text;
}

namespace {

// Returns the folder of the code: the project's, or a tree's (agent/tree/).
std::string code_folder(const config::Config& config, const config::Server& server, const std::string& tree) {
  const std::string project = config.project_path_on(server);
  return tree.empty() ? project : folder_in(project, config.remote_jobs_folder_name + "/.trees/" + tree);
}

}  // namespace

std::string activation(const config::Config& config, const config::Server& server, const std::string& tree) {
  std::string text = prologue(config, server);
  text += assign_path("__project", code_folder(config, server, tree));
  text += assign_path("__scripts", scripts_folder(config, server));
  text += assign_path("__env", environment_folder(config, server));
  text += assign("__isolated", is_isolated(config) ? "1" : "");
  switch (config.python.manager) {
    case config::PythonManager::conda:
      text += assign("__manager", "conda") + assign_path("__conda", conda_root(config));
      if (const std::string other = other_environment(config); other.empty()) {
        text += assign("__other", "");
      } else {
        text += assign_path("__other", other);
      }
      break;
    case config::PythonManager::venv:
    case config::PythonManager::uv:
      text += assign("__manager", "venv");
      break;
    case config::PythonManager::system:
      // The prologue's PATH determines which Python is used.
      text += assign("__manager", config.prologue_on(server).empty() ? "system" : "prologue");
      break;
  }
  return text + source_file("lib/activate.sh");
}

std::string container_activation(const config::Config& config, const config::Server& server,
                                 const std::string& tree) {
  return assign_path("__project", code_folder(config, server, tree)) +
         assign_path("__scripts", scripts_folder(config, server)) + assign("__manager", "none") +
         source_file("lib/activate.sh");
}

std::optional<wire::PythonEnvironment> python_environment(const config::Config& config,
                                                          const config::Server& server,
                                                          const std::string& tree) {
  if (!trim(prologue(config, server)).empty()) {
    return std::nullopt;
  }
  wire::PythonEnvironment environment = container_environment(config, server, tree);
  environment.folder = environment_folder(config, server);
  environment.is_isolated = is_isolated(config);
  switch (config.python.manager) {
    case config::PythonManager::conda:
      environment.manager = wire::EnvironmentManager::conda;
      environment.conda = conda_root(config);
      environment.other_folder = other_environment(config);
      break;
    case config::PythonManager::venv:
    case config::PythonManager::uv:
      environment.manager = wire::EnvironmentManager::venv;
      break;
    case config::PythonManager::system:
      environment.manager = wire::EnvironmentManager::system;
      break;
  }
  return environment;
}

wire::PythonEnvironment container_environment(const config::Config& config, const config::Server& server,
                                              const std::string& tree) {
  return {.code = code_folder(config, server, tree), .scripts = scripts_folder(config, server)};
}

std::vector<wire::Variable> to_wire(const Env& env) {
  std::vector<wire::Variable> variables;
  for (const auto& [name, value] : env) {
    check_variable(name);
    check_value(value);
    variables.push_back({name, value});
  }
  return variables;
}

std::string setup_digest(const config::Config& config) {
  const config::Python& python = config.python;
  Sha256 digest;
  digest.add_field("setup 1").add_field(config::to_string(python.manager));
  digest.add_field(python.version.value_or("")).add_field(python.environment);
  digest.add_field(python.system_site_packages ? "site" : "");
  if (!python.conda.empty()) {
    digest.add_field("conda").add_field(python.conda);
  }
  return digest.hex();
}

wire::ManagedPython managed_python(const config::Config& config, const config::Server& server,
                                   bool with_prologue) {
  const std::string project = config.project_path_on(server);
  const PackageSources sources = package_sources(config);
  return {.manager = static_cast<wire::PythonManager>(config.python.manager),
          .project = project,
          .scripts = scripts_folder(config, server),
          .project_key = project_key(project),
          .folder = environment_folder(config, server),
          .other_folder = other_environment(config),
          .conda = conda_root(config),
          .is_own_conda = !config.python.conda.empty(),
          .is_isolated = is_isolated(config),
          .version = config.python.version.value_or(""),
          .setup_digest = setup_digest(config),
          .packages_digest = sources.digest,
          .packages_places = places_on(config, server, sources),
          .system_packages = config.system_packages,
          .variables = to_wire(server.variables()),
          .prologue = with_prologue ? inline_files(prologue(config, server)) : "",
          .has_prologue = !config.prologue_on(server).empty()};
}

wire::PackagesStamp packages_stamp(const config::Config& config, const config::Server& server,
                                   const PackageSources& sources) {
  return {.scripts = scripts_folder(config, server),
          .project_key = project_key(config.project_path_on(server)),
          .digest = sources.digest,
          .places = places_on(config, server, sources),
          .other_folder = other_environment(config),
          .conda = conda_root(config)};
}

wire::Setup setup_request(const config::Config& config, const std::string& default_version, bool force) {
  const config::Python& python = config.python;
  const auto sum = [&python](const char* arch) {
    const auto found = python.miniconda_sha256.find(arch);
    return found == python.miniconda_sha256.end() ? std::string() : found->second;
  };
  return {.new_version = python.version.value_or(default_version),
          .has_site_packages = python.system_site_packages,
          .is_forced = force,
          .conda_url = python.miniconda_url.empty() ? default_conda_url : python.miniconda_url,
          .conda_sha256_x86_64 = sum("x86_64"),
          .conda_sha256_aarch64 = sum("aarch64")};
}

std::string local_python_version() {
  if (!find_program("python3")) {
    return {};
  }
  SubprocessSpec spec;
  spec.argv = {"python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"};
  const ExecResult result = run_subprocess(spec);
  return result.status.success() ? std::string(trim(result.out)) : std::string();
}

PackageSource package_source(const config::Config& config) {
  if (config::has_project_file(config, "Pipfile")) {
    return PackageSource::pipenv;
  }
  if (config::has_project_file(config, "requirements.txt")) {
    return PackageSource::requirements;
  }
  const auto pyproject = config::read_project_text(config, "pyproject.toml");
  return pyproject && describes_a_package(*pyproject) ? PackageSource::pyproject : PackageSource::none;
}

std::vector<std::string> needed_environments(const config::Config& config, const config::Server& server) {
  const PackageSource source = package_source(config);
  if (config.python.manager == config::PythonManager::system || !config.prologue_on(server).empty() ||
      source == PackageSource::none || source == PackageSource::pipenv) {
    return {};
  }
  std::vector<std::string> folders{environment_folder(config, server)};
  if (config.python.manager == config::PythonManager::conda && !other_environment(config).empty()) {
    folders.push_back(other_environment(config));
  }
  return folders;
}

PackageSources package_sources(const config::Config& config) {
  const PackageSource source = package_source(config);
  PackageFiles files = package_files(config, source);
  return {.digest = digest_of(config, source, files.lines), .server_places = std::move(files.server_places)};
}

wire::Packages packages_request(const config::Config& config) {
  const config::Python& python = config.python;
  const PackageSource source = package_source(config);
  wire::Packages packages{.source = source,
                          .has_lock = config::has_project_file(config, "Pipfile.lock"),
                          .index_url = python.index_url.value_or(""),
                          .extra_index_urls = python.extra_index_urls,
                          .has_no_index = python.no_index,
                          .find_links = python.find_links,
                          .constraints = python.constraints};
  for (const std::string& line : package_files(config, source).lines) {
    if (line.starts_with("end ")) {
      continue;  // a server compares the size
    }
    const std::size_t value = line.find(' ') + 1;
    const std::size_t name = line.find(' ', value) + 1;
    wire::PackageFile& file = packages.files.emplace_back();
    file.name = line.substr(name);
    const std::string text = line.substr(value, name - 1 - value);
    if (line.starts_with("size ")) {
      file.size = parse_number<std::uint64_t>(text).value_or(0);
    } else {
      file.sha256 = text;
    }
  }
  return packages;
}

}  // namespace remote::servers
