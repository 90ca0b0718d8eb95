#include "agent/job/variables.hpp"

#include <cstdlib>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/host/path.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::string_view put_aside = "REMOTE_HID_";

bool has_python(const Path& folder) {
  return is_program(folder / "bin/python");
}

void isolate(const wire::PythonEnvironment& environment) {
  if (environment.is_isolated) {
    ::setenv("PYTHONNOUSERSITE", "1", 0);
  }
}

void enter_virtual_environment(const Path& folder) {
  set_variable("VIRTUAL_ENV", folder);
  prepend_variable("PATH", folder / "bin");
  ::unsetenv("PYTHONHOME");
}

bool has_hooks(const Path& conda_environment) {
  for (const std::string& name : list_names(conda_environment / "etc/conda/activate.d")) {
    if (name.ends_with(".sh")) {
      return true;
    }
  }
  return false;
}

void enter_conda(const Path& folder, const Path& conda) {
  // The environment may belong to another conda installation.
  if (is_program(conda / "bin/conda")) {
    prepend_variable("PATH", conda / "condabin");
    set_variable("CONDA_EXE", conda / "bin/conda");
    set_variable("CONDA_PYTHON_EXE", conda / "bin/python");
  }
  prepend_variable("PATH", folder / "bin");
  set_variable("CONDA_PREFIX", folder);
  set_variable("CONDA_DEFAULT_ENV", folder == conda ? "base" : folder.filename());
  set_variable("CONDA_SHLVL", "1");
}

// Whether a configuration file of NCCL sets the variable.
bool is_in_nccl_conf(const std::string& name) {
  const std::string chosen = get_variable("NCCL_CONF_FILE");
  for (const Path& file :
       {Path(chosen.empty() ? get_variable("HOME") + "/.nccl.conf" : chosen), Path("/etc/nccl.conf")}) {
    for (const std::string& line : read_lines(file)) {
      if (line.starts_with(name + "=")) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::string get_variable(const char* name) {
  const char* value = ::getenv(name);
  return value == nullptr ? "" : value;
}

void set_variable(const std::string& name, const std::string& value) {
  ::setenv(name.c_str(), value.c_str(), 1);
}

void prepend_variable(const char* name, const std::string& entry) {
  const std::string rest = get_variable(name);
  set_variable(name, rest.empty() ? entry : entry + ":" + rest);
}

bool is_on_path(const char* program) {
  for (const std::string& folder : split(get_variable("PATH"), ':')) {
    if (is_program(Path(folder.empty() ? "." : folder) / program)) {
      return true;
    }
  }
  return false;
}

std::string expand_path(const std::string& path) {
  if (path.starts_with('/')) {
    return path;
  }
  std::string home = get_variable("HOME");
  if (path.empty() || path == "~") {
    return home;
  }
  return home + "/" + (path.starts_with("~/") ? path.substr(2) : path);
}

std::string quote_word(std::string_view word) {
  return "'" + replace_all(word, "'", "'\\''") + "'";
}

bool enter_logical_folder(const std::string& folder) {
  if (::chdir(folder.c_str()) != 0) {
    return false;
  }
  std::string place = folder;
  if (!folder.starts_with('/')) {
    const bool is_plain = !("/" + folder).ends_with('/') && ("/" + folder).find("/.") == std::string::npos;
    place = is_plain ? get_variable("PWD") + "/" + folder : find_real_path(".");
  }
  set_variable("PWD", place);
  return true;
}

void pass_on(int fd, int number) {
  ::dup2(fd, number);
  ::fcntl(number, F_SETFD, 0);
}

bool enter_environment(const wire::PythonEnvironment& environment) {
  using Manager = wire::EnvironmentManager;
  Path folder = expand_path(environment.folder);
  const Path scripts = expand_path(environment.scripts);
  const std::string code = expand_path(environment.code);
  if (environment.manager == Manager::conda) {
    if (!environment.other_folder.empty() && !has_python(folder)) {
      folder = expand_path(environment.other_folder);
    }
    if (has_python(folder)) {
      if (has_hooks(folder)) {
        return false;
      }
      enter_conda(folder, expand_path(environment.conda));
      isolate(environment);
    }
  } else if (environment.manager == Manager::venv && has_python(folder)) {
    enter_virtual_environment(folder);
    isolate(environment);
  } else if (environment.manager == Manager::system && has_python(scripts)) {
    prepend_variable("PATH", scripts / "bin");
  }
  // update-packages writes the folder of pipenv's environment to this file.
  if (is_file(Path(code) / "Pipfile")) {
    const std::string pipenv = read_first_line(scripts / "pipenv");
    if (!pipenv.empty() && has_python(pipenv)) {
      enter_virtual_environment(pipenv);
      set_variable("PIPENV_ACTIVE", "1");
    }
  }
  const std::string own = code + ":" + code + "/src";
  if ((":" + get_variable("PYTHONPATH") + ":").find(":" + own + ":") == std::string::npos) {
    prepend_variable("PYTHONPATH", own);
  }
  ::setenv("PYTHONUNBUFFERED", "1", 0);
  return true;
}

void set_defaults(const std::vector<wire::Variable>& variables) {
  for (const auto& [name, value] : variables) {
    if (!name.starts_with("NCCL_") || !is_in_nccl_conf(name)) {
      ::setenv(name.c_str(), value.c_str(), 0);
    }
  }
}

void set_variables(std::string_view lines) {
  for (const std::string& line : split(lines, '\n')) {
    const std::size_t end = line.find('=');
    if (end != std::string::npos && line[0] >= 'A' && line[0] <= 'Z') {
      set_variable(line.substr(0, end), line.substr(end + 1));
    }
  }
  if (get_variable("INIT_METHOD").starts_with("tcp://")) {
    set_variable("INIT_METHOD", "tcp://" + get_variable("MASTER_ADDR") + ":" + get_variable("MASTER_PORT"));
  }
}

void separate_attempt() {
  const std::string count = get_variable("RESTART_COUNT");
  if (count == "0") {
    return;
  }
  const std::string method = get_variable("INIT_METHOD");
  if (method.starts_with("file://")) {
    set_variable("INIT_METHOD", method + "." + count);  // the previous attempt has left its file behind
  }
  const std::string rendezvous = get_variable("PET_RDZV_ID");
  if (!rendezvous.empty()) {
    set_variable("PET_RDZV_ID", rendezvous + "-" + count);
  }
}

bool restore_account_variables() {
  std::vector<std::string> hidden;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    if (std::string_view(*entry).starts_with(put_aside)) {
      hidden.emplace_back(*entry);
    }
  }
  for (const std::string& entry : hidden) {
    if (entry.starts_with("REMOTE_HID_FUNCTIONS=")) {
      return false;
    }
  }
  for (const std::string& entry : hidden) {
    const std::string name = entry.substr(0, entry.find('='));
    ::setenv(name.c_str() + put_aside.size(), entry.c_str() + name.size() + 1, 0);
    ::unsetenv(name.c_str());
  }
  return true;
}

}  // namespace remote::agent
