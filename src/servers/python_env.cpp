#include "servers/python_env.hpp"

#include <remote/error.hpp>

#include "base/hashing.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"

namespace remote::servers {
namespace {

constexpr const char* conda_root = "~/miniconda";
constexpr const char* default_conda_url =
    "https://repo.anaconda.com/miniconda/Miniconda3-latest-Linux-{arch}.sh";

std::string folder_in(const std::string& parent, const std::string& name) {
  return parent.ends_with('/') ? parent + name : parent + "/" + name;
}

}  // namespace

std::string environment_folder(const config::Config& config, const config::Server& server) {
  const config::Python& python = config.python;
  const bool absolute = python.environment.starts_with('/') || python.environment.starts_with("~/");
  switch (python.manager) {
    case config::PythonManager::conda:
      if (absolute) {
        return python.environment;
      }
      return folder_in(conda_root,
                       "envs/" + (python.environment.empty() ? config.name + "_env" : python.environment));
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

std::string activation(const config::Config& config, const config::Server& server) {
  Script script;
  script.set_path("__project", config.project_path_on(server))
      .set_path("__scripts", scripts_folder(config, server))
      .set_path("__env", environment_folder(config, server));
  switch (config.python.manager) {
    case config::PythonManager::conda:
      script.set_path("__conda", conda_root).add("activate.sh", {"conda", "project"});
      break;
    case config::PythonManager::venv:
    case config::PythonManager::uv:
      script.add("activate.sh", {"venv", "project"});
      break;
    case config::PythonManager::system:
      script.add("activate.sh", {"system", "project"});
      break;
  }
  return script.text();
}

std::string setup_digest(const config::Config& config) {
  const config::Python& python = config.python;
  Sha256 digest;
  digest.add_field("setup 1").add_field(config::to_string(python.manager));
  digest.add_field(python.version.value_or("")).add_field(python.environment);
  digest.add_field(python.system_site_packages ? "site" : "");
  return digest.hex();
}

Script provision_variables(const config::Config& config, const config::Server& server) {
  const std::string project = config.project_path_on(server);
  Script script;
  script.set_path("PROJECT", project)
      .set_path("SCRIPTS", scripts_folder(config, server))
      .set("MANAGER", config::to_string(config.python.manager))
      .set_path("ENV_PREFIX", environment_folder(config, server))
      .set_path("CONDA_ROOT", conda_root)
      .set("PROJECT_KEY", sha256_hex(project).substr(0, 12))
      .set("SETUP_DIGEST", setup_digest(config));
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

}  // namespace remote::servers
