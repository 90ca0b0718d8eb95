#include "agent/provision/install_packages.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "agent/job/hash_file.hpp"
#include "agent/job/regular_file.hpp"
#include "agent/provision/failure.hpp"
#include "agent/provision/lock.hpp"
#include "agent/provision/temporary_file.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr const char* managed_code =
    "import os, sys, sysconfig\n"
    "sys.exit(not os.path.exists(os.path.join(sysconfig.get_path('stdlib'), 'EXTERNALLY-MANAGED')))\n";

// Checks whether these requirements are met. Ignores the project's own folder, which is not an installed
// package.
constexpr const char* requirements_code =
    "import importlib.metadata, sys\n"
    "try:\n"
    "    from packaging.requirements import Requirement\n"
    "except ImportError:\n"
    "    from pip._vendor.packaging.requirements import Requirement\n"
    "sys.path[:] = [folder for folder in sys.path if folder]\n"
    "for line in sys.argv[1:]:\n"
    "    wanted = Requirement(line)\n"
    "    if wanted.url or wanted.extras:\n"
    "        sys.exit(1)\n"
    "    if wanted.marker and not wanted.marker.evaluate():\n"
    "        continue\n"
    "    version = importlib.metadata.version(wanted.name)\n"
    "    if not wanted.specifier.contains(version, prereleases=True):\n"
    "        sys.exit(1)\n";

// Prints the dependencies in pyproject.toml, one per line. Fails if only the build system knows them.
constexpr const char* dependencies_code =
    "import sys\n"
    "try:\n"
    "    import tomllib\n"
    "except ImportError:\n"
    "    from pip._vendor import tomli as tomllib\n"
    "with open('pyproject.toml', 'rb') as file:\n"
    "    project = tomllib.load(file).get('project')\n"
    "if project is None or 'dependencies' in project.get('dynamic', []):\n"
    "    sys.exit(1)\n"
    "print(*project.get('dependencies', []), sep='\\n')\n";

// Prints those of these wheels whose package is installed in the same version, but from another build: not
// with the same files.
constexpr const char* wheels_code =
    "import importlib.metadata, sys, zipfile\n"
    "def read_files(record):\n"
    "    return {line for line in record.splitlines() if ',sha256=' in line and '.data/' not in line}\n"
    "for wheel in sys.argv[1:]:\n"
    "    name, version = wheel.rpartition('/')[2].split('-')[:2]\n"
    "    try:\n"
    "        installed = importlib.metadata.distribution(name.replace('_', '-'))\n"
    "        archive = zipfile.ZipFile(wheel)\n"
    "    except (importlib.metadata.PackageNotFoundError, OSError, zipfile.BadZipFile):\n"
    "        continue\n"
    "    records = [file for file in archive.namelist() if file.endswith('.dist-info/RECORD')]\n"
    "    if installed.version.replace('-', '_') != version or len(records) != 1:\n"
    "        continue\n"
    "    wanted = read_files(archive.read(records[0]).decode())\n"
    "    if wanted - read_files(installed.read_text('RECORD') or ''):\n"
    "        print(wheel)\n";

constexpr std::string_view blanks = " \t\r\n\f\v";

// The lines of a project's file, which may be a link.
std::vector<std::string> read_lines_of(const Path& path) {
  constexpr std::size_t most = std::size_t{1} << 20U;
  const RegularFile file(path, Links::follow);
  if (!file) {
    return {};
  }
  std::string text(std::min<std::uint64_t>(file.size(), most), '\0');
  text.resize(file.read(text.data(), text.size(), 0));
  return split(text, '\n');
}

// A line of a requirements file, without its comment.
std::string remove_comment(std::string_view line) {
  for (std::size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1)) {
    if (at == 0 || blanks.find(line[at - 1]) != std::string_view::npos) {
      line = line.substr(0, at);
      break;
    }
  }
  return std::string(trim(line));
}

class PackageInstaller {
 public:
  PackageInstaller(Steps& steps, const PythonPlace& place, const wire::Packages& packages, Path python)
      : steps_(steps), place_(place), packages_(packages), python_(std::move(python)) {
    set_variables();
  }

  void install() {
    const Path pipenv_stamp = place_.scripts() / "pipenv";
    if (packages_.source != PackageSource::pipenv) {
      ::unlink(pipenv_stamp.c_str());
    }
    switch (packages_.source) {
      case PackageSource::none:
        break;
      case PackageSource::requirements:
        install_requirements();
        break;
      case PackageSource::pyproject:
        install_project();
        break;
      case PackageSource::pipenv:
        install_with_pipenv(pipenv_stamp);
        break;
    }
  }

 private:
  // Resolves a URL or a path. Relative paths are relative to the project.
  std::string resolve(const std::string& place) const {
    if (place.starts_with('/') || place.find("://") != std::string::npos) {
      return place;
    }
    return place.starts_with("~/") ? place_.home() / place.substr(2) : place_.project() / place;
  }

  // Indexes are passed in variables, because they may contain passwords, and all users can see arguments.
  void set_variables() {
    auto& variables = steps_.host().environment;
    variables["PIP_DISABLE_PIP_VERSION_CHECK"] = "1";
    variables["PIP_NO_INPUT"] = "1";
    // Otherwise pip counts the packages in ~/.local as installed. pipenv itself may be in that folder.
    if (place_.python().is_isolated && packages_.source != PackageSource::pipenv) {
      variables.try_emplace("PYTHONNOUSERSITE", "1");
    }
    if (place_.python().is_isolated) {
      variables["PIP_USER"] = "0";  // `user = true` of the account would make pip refuse every environment
    }
    if (!packages_.index_url.empty()) {
      for (const char* name : {"PIP_INDEX_URL", "UV_DEFAULT_INDEX", "PIPENV_PYPI_MIRROR"}) {
        variables[name] = packages_.index_url;
      }
    }
    if (!packages_.extra_index_urls.empty()) {
      for (const char* name : {"PIP_EXTRA_INDEX_URL", "UV_INDEX"}) {
        variables[name] = join(packages_.extra_index_urls, " ");
      }
    }
    if (packages_.has_no_index) {
      variables["PIP_NO_INDEX"] = "1";  // for the pip that pipenv runs
      options_.emplace_back("--no-index");
    }
    std::vector<std::string> links;
    for (const std::string& link : packages_.find_links) {
      links.push_back(resolve(link));
      options_.insert(options_.end(), {"--find-links", links.back()});
    }
    for (const std::string& file : packages_.constraints) {
      options_.insert(options_.end(), {"--constraint", resolve(file)});
    }
    if (!links.empty()) {
      variables["PIP_FIND_LINKS"] = join(links, " ");
    }
  }

  bool uses_uv() const { return place_.python().manager == wire::PythonManager::uv; }
  // Whether the distribution manages the packages of its Python.
  bool is_externally_managed() {
    return place_.python().manager == wire::PythonManager::system &&
           steps_.run_silently({python_, "-c", managed_code});
  }

  Steps::Command make_command(const std::vector<std::string>& wanted) const {
    Steps::Command command = uses_uv()
                                 ? Steps::Command{uv_, "pip", "install", "--python", python_}
                                 : Steps::Command{python_, "-m", "pip", "install", "--progress-bar", "off"};
    command.insert(command.end(), options_.begin(), options_.end());
    command.insert(command.end(), wanted.begin(), wanted.end());
    return command;
  }

  void find_installer() {
    if (uses_uv()) {
      uv_ = find_uv(steps_.host());
      if (uv_.empty()) {
        throw ProvisionError("uv was not found on this server");
      }
    } else if (!steps_.run({python_, "-c", "import pip"})) {
      throw ProvisionError("this server's Python has no pip",
                           "apt-get install python3-pip there, list it under system_packages, or set python: "
                           "{manager: venv}");
    }
  }

  [[noreturn]] void fail_installation() const {
    throw ProvisionError(uses_uv() ? "uv could not install the packages"
                                   : "pip could not install the packages");
  }

  void install_with_pip(const std::vector<std::string>& wanted) {
    find_installer();
    if (is_externally_managed()) {
      check_system_packages(wanted);
    } else if (!steps_.run(make_command(wanted))) {
      fail_installation();
    }
  }

  // Checks that everything is installed, and changes nothing.
  void check_system_packages(const std::vector<std::string>& wanted) {
    // Some versions of pip refuse even a dry run without this variable.
    steps_.host().environment["PIP_BREAK_SYSTEM_PACKAGES"] = "1";
    Steps::Command command = make_command(wanted);
    command.insert(command.begin() + 4, {"--dry-run", "--no-index"});
    const RunResult result = steps_.read_all(command);
    steps_.host().environment.erase("PIP_BREAK_SYSTEM_PACKAGES");
    steps_.send_out(result.out);
    if (!result.succeeded() || result.out.find("Would install") != std::string::npos) {
      steps_.send_errors(result.out);
      throw ProvisionError(
          "the system's Python belongs to the distribution (PEP 668), and it lacks packages of the project",
          "set python: {manager: venv, system_site_packages: true} in configs.yaml, or install the "
          "distribution's packages (system_packages)");
    }
  }

  void install_requirements() {
    if (packages_.constraints.empty() && are_requirements_met()) {
      steps_.begin("the environment has all packages");
    } else {
      const std::vector<std::string> rebuilt = find_rebuilt_wheels();
      install_with_pip({"-r", "requirements.txt"});
      reinstall(rebuilt);
    }
  }

  void reinstall(const std::vector<std::string>& wheels) {
    if (wheels.empty() || is_externally_managed()) {
      return;
    }
    Steps::Command wanted{"--force-reinstall", "--no-deps"};
    wanted.insert(wanted.end(), wheels.begin(), wheels.end());
    if (!steps_.run(make_command(wanted))) {
      fail_installation();
    }
  }

  // The project's wheels whose package is installed in the same version from another build. pip would keep
  // that build.
  std::vector<std::string> find_rebuilt_wheels() {
    std::vector<std::string> wheels;
    for (const wire::PackageFile& file : packages_.files) {
      if (file.name.ends_with(".whl")) {
        wheels.push_back(place_.project() / file.name);
      }
    }
    if (wheels.empty()) {
      return wheels;  // without starting Python
    }
    Steps::Command command{python_, "-c", wheels_code};
    command.insert(command.end(), wheels.begin(), wheels.end());
    std::vector<std::string> rebuilt = split(steps_.read(command).value_or(""), '\n');
    std::erase(rebuilt, "");
    return rebuilt;
  }

  // Whether an environment with the system's packages meets all requirements. pip would also install
  // everything in the metadata of the distribution's packages, which is more than needed.
  bool are_requirements_met() {
    // Python searches these two places.
    const Path bin = python_.parent_path();
    for (const Path& settings : {bin / "pyvenv.cfg", bin.parent_path() / "pyvenv.cfg"}) {
      if (exists(settings) && !has_system_packages(settings)) {
        return false;
      }
    }
    Steps::Command command{python_, "-c", requirements_code};
    std::size_t size = 0;
    for (const std::string& line : read_lines_of(place_.project() / "requirements.txt")) {
      if (std::string wanted = remove_comment(line); !wanted.empty()) {
        size += wanted.size();
        command.push_back(std::move(wanted));
      }
    }
    return size <= longest_arguments && exists(place_.project() / "requirements.txt") &&
           steps_.run_silently(command);
  }
  static bool has_system_packages(const Path& settings) {
    const std::vector<std::string> lines = read_lines_of(settings);
    return std::ranges::any_of(lines, [](const std::string& line) {
      const std::size_t equals = line.find('=');
      return equals != std::string::npos &&
             lower_case(trim(line.substr(0, equals))) == "include-system-site-packages" &&
             lower_case(trim(line.substr(equals + 1))) == "true";
    });
  }

  // Whether the project has no description of a package to build.
  bool is_application() const {
    const Path& project = place_.project();
    const std::vector<std::string> lines = read_lines_of(project / "pyproject.toml");
    return !exists(project / "setup.py") && !exists(project / "setup.cfg") && !is_folder(project / "src") &&
           std::ranges::none_of(
               lines, [](const std::string& line) { return trim(line).starts_with("[build-system]"); });
  }

  void install_dependencies(const std::string& dependencies) {
    if (trim(dependencies).empty()) {
      return;
    }
    const TemporaryFile wanted(place_.packages_stamp().string() + ".wanted");
    const Path folder = wanted.path().parent_path();
    if (!make_open_folders(folder) || !put_open_file(wanted.path(), dependencies)) {
      throw ProvisionError("cannot write to " + folder.string());
    }
    install_with_pip({"-r", wanted.path()});
  }

  void install_project() {
    const Steps::Command list_dependencies{python_, "-c", dependencies_code};
    if (is_application()) {
      if (const auto dependencies = steps_.read(list_dependencies)) {
        steps_.begin("the dependencies alone");
        install_dependencies(*dependencies);
        return;
      }
    }
    const std::vector<std::string> in_place{"-e", "."};
    if (is_externally_managed()) {
      install_with_pip(in_place);
      return;
    }
    find_installer();
    std::string errors;
    if (steps_.run(make_command(in_place), &errors)) {
      return;
    }
    const bool has_several = errors.find("Multiple top-level packages discovered") != std::string::npos;
    const auto dependencies = has_several ? steps_.read(list_dependencies) : std::nullopt;
    if (!dependencies) {
      fail_installation();
    }
    install_dependencies(*dependencies);
    steps_.note(
        "the dependencies are installed, but not the project itself: setuptools found several top-level "
        "packages in it");
  }

  Path find_pipenv() {
    return choose_program({python_.parent_path() / "pipenv", steps_.host().find_program("pipenv"),
                           place_.home() / ".local/bin/pipenv"});
  }

  void install_with_pipenv(const Path& stamp) {
    Path pipenv = find_pipenv();
    if (pipenv.empty()) {
      steps_.begin("installing pipenv");
      install_with_pip({"pipenv"});
      pipenv = find_pipenv();
      if (pipenv.empty()) {
        throw ProvisionError("pipenv was installed and cannot be found");
      }
    }
    for (const auto& [name, value] :
         std::vector<std::pair<const char*, const char*>>{{"PIPENV_IGNORE_VIRTUALENVS", "1"},
                                                          {"PIPENV_NOSPIN", "1"},
                                                          {"PIPENV_YES", "1"},
                                                          {"PIPENV_VERBOSITY", "-1"},
                                                          {"CI", "1"}}) {
      steps_.host().environment[name] = value;
    }
    steps_.begin("pipenv");
    // Uses the environment's own interpreter, unless the Pipfile's environment already exists.
    if (!steps_.run_silently({pipenv, "--venv"}) && !steps_.run({pipenv, "--python", python_})) {
      throw ProvisionError("pipenv could not make its environment");
    }
    if (packages_.has_lock && !steps_.run({pipenv, "sync"})) {
      throw ProvisionError("pipenv sync failed");
    }
    if (!packages_.has_lock && !steps_.run({pipenv, "install", "--skip-lock"})) {
      throw ProvisionError("pipenv install failed");
    }
    const auto folder = steps_.read({pipenv, "--venv"});
    if (!folder) {
      throw ProvisionError("pipenv does not report its environment");
    }
    // Commands use this file to enter the environment, because asking pipenv takes half a second.
    write_stamp(stamp, {std::string(trim(*folder))});
  }

  static constexpr std::size_t longest_arguments = 100'000;

  Steps& steps_;
  const PythonPlace& place_;
  const wire::Packages& packages_;
  Path python_;
  Path uv_;
  std::vector<std::string> options_;
};

// Returns the first file that differs from the client's; "" if there is none.
std::string find_different_file(const PythonPlace& place, const wire::Packages& packages) {
  for (const wire::PackageFile& wanted : packages.files) {
    const RegularFile file(place.project() / wanted.name, Links::follow);
    const bool is_same =
        file && (wanted.sha256.empty() ? file.size() == wanted.size : hash_file(file) == wanted.sha256);
    if (!is_same) {
      return wanted.name;
    }
  }
  return "";
}

}  // namespace

void install_packages(Steps& steps, const PythonPlace& place, const wire::Packages& packages) {
  if (!is_folder(place.project())) {
    throw ProvisionError("there is no folder " + place.project().string(), "send the project there first");
  }
  steps.enter_folder(place.project());
  const EnvironmentLock lock(steps, place);
  const std::string digest = place.packages_digest(steps.host());
  if (lock.has_waited() && has_stamp(place.packages_stamp(), digest)) {
    return;  // another process has just done it
  }
  const Path python = place.find_interpreter(steps.host());
  if (python.empty()) {
    throw ProvisionError::no_environment();
  }
  if (!make_open_folders(place.folder())) {
    throw ProvisionError("cannot write to " + place.folder().string());
  }
  write_stamp(place.packages_stamp(), {"unfinished"});  // if the installation fails, launches warn about it
  // Compare before the installation, because a file that arrives during it would otherwise count as
  // installed.
  const std::string different = find_different_file(place, packages);
  PackageInstaller(steps, place, packages, python).install();
  if (different.empty()) {
    write_stamp(place.packages_stamp(), {digest});
  } else {
    steps.note("the packages are those of the project on the server, and its " + different +
               " differs from the local copy: send the project, then update again");
  }
}

}  // namespace remote::agent
