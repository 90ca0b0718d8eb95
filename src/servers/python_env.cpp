#include "servers/python_env.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <vector>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "servers/shell_text.hpp"

namespace remote::servers {
namespace fs = std::filesystem;
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

// Where the environment goes when an installation of the user's own takes none: where conda itself puts it.
std::string other_environment(const config::Config& config) {
  return config.python.conda.empty() || is_absolute(config.python.environment) ||
                 config.python.environment == "base"
             ? std::string()
             : "~/.conda/envs/" + conda_environment_name(config);
}

bool is_local(const std::string& place) {
  return place.find("://") == std::string::npos;
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

// The files that decide what is installed, a line each: "sha256 HEX NAME", or "size BYTES NAME" for a wheel.
// Names are relative to the project, where they are in it.
class Sources {
 public:
  explicit Sources(const fs::path& project) : project_(project) {}

  // Returns the content.
  std::string add_file(const std::string& name) {
    const fs::path path = (project_ / name).lexically_normal();
    const auto text = seen_.insert(path).second ? read_file_if_there(path) : std::nullopt;
    if (text) {
      lines_.insert("sha256 " + sha256_hex(*text) + " " + named(path));
    }
    return text.value_or("");
  }
  // A file with those that it names.
  void add_requirements(const std::string& name) {
    for (const std::string& line : split(add_file(name), '\n')) {
      if (const auto other = included(line)) {
        add_requirements((project_ / name).parent_path() / *other);
      }
    }
  }
  void add_wheels(const std::string& folder) {
    std::error_code error;
    for (fs::directory_iterator entry(project_ / folder, error), end; !error && entry != end;
         entry.increment(error)) {
      std::error_code ignored;
      const std::string name = entry->path().filename().string();
      if ((name.ends_with(".whl") || name.ends_with(".tar.gz")) && entry->is_regular_file(ignored)) {
        lines_.insert("size " + std::to_string(entry->file_size(ignored)) + " " +
                      named(entry->path().lexically_normal()));
      }
    }
  }
  const std::set<std::string>& lines() const { return lines_; }

 private:
  std::string named(const fs::path& path) const {
    const fs::path relative = path.lexically_relative(project_.lexically_normal());
    return *relative.begin() == ".." ? path.string() : relative.string();
  }
  // The file that a line such as "-r more.txt" or "--constraint=limits.txt # why" names.
  static std::optional<std::string> included(const std::string& line) {
    for (const std::string_view option : {"-r", "--requirement", "-c", "--constraint"}) {
      if (!line.starts_with(option)) {
        continue;
      }
      std::string_view name = std::string_view(line).substr(option.size());
      if (name.starts_with('=')) {
        name.remove_prefix(1);
      } else if (option.starts_with("--") && !name.starts_with(' ')) {
        continue;
      }
      name = trim(name.substr(0, name.find(" #")));
      if (!name.empty() && is_local(std::string(name))) {
        return std::string(name);
      }
    }
    return std::nullopt;
  }

  const fs::path& project_;
  std::set<fs::path> seen_;
  std::set<std::string> lines_;
};

std::set<std::string> sources_of(const config::Config& config, PackageSource source) {
  const config::Python& python = config.python;
  Sources sources(config.project);
  switch (source) {
    case PackageSource::pipenv:
      sources.add_file("Pipfile");
      sources.add_file("Pipfile.lock");
      break;
    case PackageSource::requirements:
      sources.add_requirements("requirements.txt");
      break;
    case PackageSource::pyproject:
      for (const char* file : {"pyproject.toml", "setup.cfg", "setup.py"}) {
        sources.add_file(file);
      }
      break;
    case PackageSource::none:
      return {};
  }
  for (const std::string& place : python.find_links) {
    if (is_local(place) && !place.starts_with('/') && !place.starts_with('~')) {
      sources.add_wheels(place);
    }
  }
  for (const std::string& file : python.constraints) {
    if (is_local(file)) {
      sources.add_requirements(file);
    }
  }
  return sources.lines();
}

std::string digest_of(const config::Config& config, PackageSource source,
                      const std::set<std::string>& sources) {
  const config::Python& python = config.python;
  Sha256 digest;
  digest.add_field("packages 2").add_field(to_string(source)).add_field(setup_digest(config));
  if (source == PackageSource::none) {
    return digest.hex();  // pip's options decide nothing
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

// The second folder for an environment, which there may be none of.
void set_other(Script& script, const char* name, const config::Config& config) {
  const std::string other = other_environment(config);
  if (other.empty()) {
    script.set(name, "");
  } else {
    script.set_path(name, other);
  }
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
  Script script;
  script.set("__prologue", text).set_path("__project", config.project_path_on(server));
  return shell_text(script.add("lib/prologue.sh"));
}

namespace {

// Where the code is: the project's folder, or a tree (src/server/python/tree.py).
std::string code_folder(const config::Config& config, const config::Server& server, const std::string& tree) {
  const std::string project = config.project_path_on(server);
  return tree.empty() ? project : folder_in(project, config.remote_jobs_folder_name + "/.trees/" + tree);
}

}  // namespace

std::string activation(const config::Config& config, const config::Server& server, const std::string& tree) {
  Script script;
  script.append(prologue(config, server));
  script.set_path("__project", code_folder(config, server, tree))
      .set_path("__scripts", scripts_folder(config, server))
      .set_path("__env", environment_folder(config, server));
  switch (config.python.manager) {
    case config::PythonManager::conda:
      script.set("__manager", "conda").set_path("__conda", conda_root(config));
      set_other(script, "__other", config);
      break;
    case config::PythonManager::venv:
    case config::PythonManager::uv:
      script.set("__manager", "venv");
      break;
    case config::PythonManager::system:
      // What the prologue put into PATH is the Python that is meant.
      script.set("__manager", config.prologue_on(server).empty() ? "system" : "prologue");
      break;
  }
  return shell_text(script.add("lib/activate.sh"));
}

std::string container_activation(const config::Config& config, const config::Server& server,
                                 const std::string& tree) {
  Script script;
  script.set_path("__project", code_folder(config, server, tree))
      .set_path("__scripts", scripts_folder(config, server))
      .set("__manager", "none");
  return shell_text(script.add("lib/activate.sh"));
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

Script provision_variables(const config::Config& config, const config::Server& server) {
  const std::string project = config.project_path_on(server);
  Script script;
  script.set_path("PROJECT", project)
      .set_path("SCRIPTS", scripts_folder(config, server))
      .set("MANAGER", config::to_string(config.python.manager))
      .set_path("ENV_PREFIX", environment_folder(config, server))
      .set_path("CONDA_ROOT", conda_root(config))
      .set("PROJECT_KEY", sha256_hex(project).substr(0, 12))
      .set("SETUP_DIGEST", setup_digest(config))
      .set("CONDA_GIVEN", config.python.conda.empty() ? "" : "1")
      .set("PROLOGUE_GIVEN", config.prologue_on(server).empty() ? "" : "1");
  set_other(script, "OTHER_PREFIX", config);
  return script;
}

Script setup_variables(const config::Config& config, const std::string& default_version, bool force) {
  const config::Python& python = config.python;
  const auto sum = [&python](const char* arch) {
    const auto found = python.miniconda_sha256.find(arch);
    return found == python.miniconda_sha256.end() ? std::string() : found->second;
  };
  Script script;
  script.set("VERSION", python.version.value_or(default_version))
      .set("ASKED_VERSION", python.version.value_or(""))
      .set("SITE_PACKAGES", python.system_site_packages ? "1" : "")
      .set("FORCE", force ? "1" : "")
      .set("CONDA_URL", python.miniconda_url.empty() ? default_conda_url : python.miniconda_url)
      .set("CONDA_SHA256_X86_64", sum("x86_64"))
      .set("CONDA_SHA256_AARCH64", sum("aarch64"));
  return script;
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
  if (is_there(config.project / "Pipfile")) {
    return PackageSource::pipenv;
  }
  if (is_there(config.project / "requirements.txt")) {
    return PackageSource::requirements;
  }
  const auto pyproject = read_file_if_there(config.project / "pyproject.toml");
  return pyproject && describes_a_package(*pyproject) ? PackageSource::pyproject : PackageSource::none;
}

std::string to_string(PackageSource source) {
  constexpr std::array names{"none", "pipenv", "requirements", "pyproject"};  // in the order of the sources
  return names.at(static_cast<std::size_t>(source));
}

std::string packages_digest(const config::Config& config) {
  const PackageSource source = package_source(config);
  return digest_of(config, source, sources_of(config, source));
}

Script packages_variables(const config::Config& config) {
  const config::Python& python = config.python;
  std::vector<std::string> options;
  for (const std::string& place : python.find_links) {
    options.insert(options.end(), {"--find-links", place});
  }
  for (const std::string& place : python.constraints) {
    options.insert(options.end(), {"--constraint", place});
  }
  const PackageSource source = package_source(config);
  const std::set<std::string> lines = sources_of(config, source);
  // Of the files that are the server's own, nobody here can say what they hold.
  std::string sources;
  for (const std::string& line : lines) {
    const std::size_t name = line.find(' ', line.find(' ') + 1) + 1;
    if (line[name] != '/' && line.find('\n') == std::string::npos) {
      sources += line + "\n";
    }
  }
  Script script;
  script.set("SOURCES", sources)
      .set("PACKAGES_DIGEST", digest_of(config, source, lines))
      .set("KIND", to_string(source))
      .set("LOCKED", is_there(config.project / "Pipfile.lock") ? "1" : "")
      .set("INDEX_URL", python.index_url.value_or(""))
      .set("EXTRA_INDEX_URLS", join(python.extra_index_urls, " "))
      .set("NO_INDEX", python.no_index ? "1" : "")
      .call("set --", options);
  return script;
}

}  // namespace remote::servers
