#include "servers/python_env.hpp"

#include <remote/error.hpp>

#include "base/hashing.hpp"
#include "base/shell_quote.hpp"
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

std::string scripts_folder(const config::Config& config, const config::Server& server) {
  return folder_in(config.project_path_on(server), config.remote_scripts_folder_name);
}

std::string assign(const char* name, const std::string& word) {
  return std::string(name) + "=" + word + "\n";
}

// Inside an environment made by venv, uv, virtualenv or pipenv; $__env is its folder.
constexpr const char* enter_venv =
    "VIRTUAL_ENV=$__env\n"
    "PATH=$__env/bin:$PATH\n"
    "export VIRTUAL_ENV PATH\n"
    "unset PYTHONHOME\n";

// What `conda activate` does, without conda's half second: PATH, its variables, the hooks of the packages.
// A hook is tried in a subshell first, because a syntax that this sh does not know would end the command.
constexpr const char* enter_conda =
    "PATH=$__env/bin:$__conda/condabin:$PATH\n"
    "CONDA_PREFIX=$__env CONDA_DEFAULT_ENV=${__env##*/} CONDA_SHLVL=1\n"
    "CONDA_EXE=$__conda/bin/conda CONDA_PYTHON_EXE=$__conda/bin/python\n"
    "export PATH CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_SHLVL CONDA_EXE CONDA_PYTHON_EXE\n"
    "for __hook in \"$__env\"/etc/conda/activate.d/*.sh; do\n"
    "if [ -f \"$__hook\" ] && (. \"$__hook\") </dev/null >/dev/null 2>&1; then . \"$__hook\"; fi\n"
    "done\n"
    "unset __hook\n";

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

std::string activation(const config::Config& config, const config::Server& server) {
  std::string text = assign("__project", remote_path_word(config.project_path_on(server)));
  const std::string scripts = remote_path_word(scripts_folder(config, server));
  text += assign("__env", remote_path_word(environment_folder(config, server)));
  switch (config.python.manager) {
    case config::PythonManager::conda:
      text += assign("__conda", remote_path_word(conda_root));
      text += "if [ -x \"$__env/bin/python\" ]; then\n" + std::string(enter_conda) + "fi\nunset __conda\n";
      break;
    case config::PythonManager::venv:
    case config::PythonManager::uv:
      text += "if [ -x \"$__env/bin/python\" ]; then\n" + std::string(enter_venv) + "fi\n";
      break;
    case config::PythonManager::system:
      text += "if [ -x " + scripts + "/bin/python ]; then PATH=" + scripts + "/bin:$PATH; export PATH; fi\n";
      break;
  }
  // Where there is a Pipfile, commands run in its environment; update-packages wrote down where that is.
  text += "if [ -f \"$__project/Pipfile\" ] && [ -f " + scripts + "/pipenv ] && IFS= read -r __env <" +
          scripts + "/pipenv && [ -x \"$__env/bin/python\" ]; then\n" + enter_venv +
          "PIPENV_ACTIVE=1; export PIPENV_ACTIVE\nfi\n";
  text += "PYTHONPATH=$__project:$__project/src${PYTHONPATH:+:$PYTHONPATH}\nexport PYTHONPATH\n";
  text += "unset __env __project\n";
  return text;
}

std::string setup_digest(const config::Config& config) {
  const config::Python& python = config.python;
  Sha256 digest;
  digest.add_field("setup 1").add_field(config::to_string(python.manager));
  digest.add_field(python.version.value_or("")).add_field(python.environment);
  digest.add_field(python.system_site_packages ? "site" : "");
  return digest.hex();
}

std::string provision_variables(const config::Config& config, const config::Server& server) {
  const std::string project = config.project_path_on(server);
  // Several projects may share an environment; each keeps its own record of what it installed.
  const std::string key = sha256_hex(project).substr(0, 12);
  std::string text = assign("PROJECT", remote_path_word(project));
  text += assign("SCRIPTS", remote_path_word(scripts_folder(config, server)));
  text += assign("MANAGER", shell_quote(config::to_string(config.python.manager)));
  text += assign("ENV_PREFIX", remote_path_word(environment_folder(config, server)));
  text += assign("CONDA_ROOT", remote_path_word(conda_root));
  text += "SETUP_STAMP=$ENV_PREFIX/.remote-setup\n";
  text += "PACKAGES_STAMP=$ENV_PREFIX/.remote-packages." + key + "\n";
  text += assign("SETUP_DIGEST", setup_digest(config));
  return text;
}

std::string setup_variables(const config::Config& config, const std::string& default_version, bool force) {
  const config::Python& python = config.python;
  const auto sum = [&python](const char* arch) {
    const auto found = python.miniconda_sha256.find(arch);
    return found == python.miniconda_sha256.end() ? std::string() : found->second;
  };
  std::string text = assign("VERSION", shell_quote(python.version.value_or(default_version)));
  text += assign("SITE_PACKAGES", python.system_site_packages ? "1" : "");
  text += assign("FORCE", force ? "1" : "");
  text += assign("CONDA_URL",
                 shell_quote(python.miniconda_url.empty() ? default_conda_url : python.miniconda_url));
  text += assign("CONDA_SHA256_X86_64", shell_quote(sum("x86_64")));
  text += assign("CONDA_SHA256_AARCH64", shell_quote(sum("aarch64")));
  return text;
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
