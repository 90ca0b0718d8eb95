#include "agent/provision/make_environment.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "agent/host/processes.hpp"
#include "agent/host/utc_time.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/variables.hpp"
#include "agent/provision/disk_flaw.hpp"
#include "agent/provision/failure.hpp"
#include "agent/provision/find_python.hpp"
#include "agent/provision/lock.hpp"
#include "base/strings.hpp"
#include "rules/python_version.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::string_view adopted_mark = "adopted";
constexpr const char* move_hint = "move it away and run the command again";

class EnvironmentMaker {
 public:
  EnvironmentMaker(Steps& steps, const PythonPlace& place, const wire::Setup& setup)
      : steps_(steps), place_(place), setup_(setup), unfinished_(place) {}

  void make() {
    install_system_packages();
    if (!setup_.is_forced && place_.is_set_up(steps_.host())) {
      return;  // another process has done it in the meantime
    }
    switch (place_.python().manager) {
      case wire::PythonManager::system:
        link_system_python();
        break;
      case wire::PythonManager::venv:
        make_venv();
        break;
      case wire::PythonManager::uv:
        make_uv_environment();
        break;
      case wire::PythonManager::conda:
        make_conda_environment();
        break;
    }
    std::vector<std::string> lines{place_.python().setup_digest};
    if (is_adopted_) {
      lines.emplace_back(adopted_mark);
    }
    write_stamp(place_.setup_stamp(), lines);
    unfinished_.end();
  }

 private:
  Path interpreter() const { return place_.folder() / "bin/python"; }
  Path conda_program() const { return place_.conda() / "bin/conda"; }

  void install_system_packages() {
    const std::vector<std::string> missing =
        find_missing_packages(steps_.host(), place_.python().system_packages);
    if (missing.empty()) {
      return;
    }
    const std::string names = join(missing, " ");
    steps_.begin("apt-get install " + names);
    if (steps_.host().find_program("apt-get").empty()) {
      throw ProvisionError("system_packages needs apt-get, which this server lacks",
                           "install " + names + " by hand and remove them from the list");
    }
    Steps::Command apt{"apt-get"};
    if (trim(steps_.read({"id", "-u"}).value_or("")) != "0") {
      apt = {"sudo", "-n", "apt-get"};
      check_sudo(names);
    }
    steps_.host().environment["DEBIAN_FRONTEND"] = "noninteractive";
    Steps::Command update = apt;
    update.emplace_back("update");
    // A new machine first installs its updates. apt-get prints the process that it waits for.
    apt.insert(apt.end(), {"install", "-y", "-o", "DPkg::Lock::Timeout=600", "--"});
    apt.insert(apt.end(), missing.begin(), missing.end());
    if (run_apt(apt)) {
      return;
    }
    steps_.begin("apt-get update");
    if (!run_apt(update) || !run_apt(apt)) {
      throw ProvisionError("apt-get could not install " + names, "");
    }
  }
  // apt-get itself waits for the lock of dpkg, but not for those of its lists and archives.
  bool run_apt(const Steps::Command& command) {
    using std::chrono::seconds;
    constexpr seconds longest_wait{600};
    constexpr seconds longest_pause{10};
    const auto end = std::chrono::steady_clock::now() + longest_wait;
    for (seconds pause{1};; pause = std::min(2 * pause, longest_pause)) {
      std::string errors;
      if (steps_.run(command, &errors)) {
        return true;
      }
      if (errors.find("Could not get lock") == std::string::npos || std::chrono::steady_clock::now() >= end) {
        return false;
      }
      if (pause == seconds(1)) {
        const std::string refusal = errors.substr(errors.find("Could not get lock"));
        steps_.begin("Waiting for cache lock: " + refusal.substr(0, refusal.find('\n')));  // like apt-get
      }
      std::this_thread::sleep_for(pause);
      steps_.check_client();
    }
  }
  void check_sudo(const std::string& names) {
    if (steps_.host().find_program("sudo").empty()) {
      throw ProvisionError("system_packages needs root or sudo, and there is no sudo",
                           "let an administrator install " + names);
    }
    if (!steps_.run({"sudo", "-n", "true"})) {
      throw ProvisionError("system_packages needs sudo without a password, and sudo asks for one",
                           "let an administrator install " + names + ", or allow it in sudoers (NOPASSWD)");
    }
  }

  // Whether the existing environment can be kept. If this program created it, with other settings or
  // incompletely, it is removed. Any other environment is never removed, and used if it is suitable.
  bool can_keep() {
    if (!exists(place_.folder())) {
      return false;
    }
    const std::string folder = place_.folder();
    if (unfinished_.has_begun() || is_made_by_us()) {
      steps_.begin("removing the former environment");
      unfinished_.begin();
      ::unlink(place_.setup_stamp().c_str());
      // Removed by a program, because that can be interrupted.
      if (!steps_.run({"rm", "-rf", folder})) {
        throw ProvisionError("cannot remove " + folder);
      }
      return false;
    }
    // Without its pyvenv.cfg, a venv runs the system's Python, and would install into it.
    if (place_.python().manager != wire::PythonManager::conda && !is_file(place_.folder() / "pyvenv.cfg")) {
      throw ProvisionError(folder + " exists but is not a virtual environment", move_hint);
    }
    if (!steps_.run_silently({interpreter(), "-c", "import pip"})) {
      throw ProvisionError(folder + " exists but has no working Python with pip", move_hint);
    }
    const std::string& version = place_.python().version;
    if (!version.empty() && !is_python(steps_.host(), interpreter(), version)) {
      throw ProvisionError(folder + " exists but has a different Python than " + version, move_hint);
    }
    is_adopted_ = true;
    steps_.note("took over " + folder + ", which was there already");
    return true;
  }
  bool is_made_by_us() const {
    const auto stamp = read_job_file(place_.setup_stamp());
    if (!stamp) {
      return false;
    }
    const std::vector<std::string> lines = split(*stamp, '\n');
    return std::ranges::find(lines, adopted_mark) == lines.end();
  }

  Path find_new_python() {
    const std::string& version = setup_.new_version;
    const FoundPython found = find_python(steps_.host(), version);
    if (!found.program.empty()) {
      return found.program;
    }
    const std::string wanted = version.empty() ? rules::usable_python : "Python " + version;
    const std::string reason = "there is no " + wanted + " on the PATH of this server" +
                               (found.refusal.empty() ? "" : "; " + found.refusal);
    if (const Path hidden = find_hidden_python(steps_.host(), version); !hidden.empty()) {
      const std::string folder = wire::to_line(quote_word(hidden.parent_path().string()), 300);
      throw ProvisionError(reason, "there is one in another folder: `prologue: export PATH=" + folder +
                                       ":$PATH` in configs.yaml");
    }
    throw ProvisionError(reason, version.empty() ? "install it (apt-get install python3), or set python: "
                                                   "{manager: conda} in configs.yaml"
                                                 : "install python" + version +
                                                       " there, set another python.version, or use python: "
                                                       "{manager: conda}");
  }

  // Commands run `python`. Debian only has python3, and on other systems `python` may be Python 2.
  void link_system_python() {
    const Path python = find_new_python();
    const Path bin = place_.scripts() / "bin";
    const Path link = bin / "python";
    if (!make_open_folders(place_.folder()) || !make_open_folders(bin)) {
      throw explain_failure(place_.scripts(), "cannot write to " + place_.scripts().string());
    }
    ::unlink(link.c_str());
    const Path plain = steps_.host().find_program("python");
    if ((plain.empty() || !is_python(steps_.host(), plain, setup_.new_version)) &&
        ::symlink(python.c_str(), link.c_str()) != 0) {
      throw explain_failure(bin, "cannot write to " + bin.string());
    }
  }

  void make_venv() {
    if (can_keep()) {
      return;
    }
    const Path python = find_new_python();
    unfinished_.begin();
    steps_.begin("making the environment with " + python.string());
    if (!steps_.run({python, "-c", "import ensurepip, venv"})) {
      throw ProvisionError("this server's Python cannot make environments (no venv module)",
                           "apt-get install python3-venv there, or list it under system_packages");
    }
    Steps::Command command{python, "-m", "venv"};
    if (setup_.has_site_packages) {
      command.emplace_back("--system-site-packages");
    }
    command.push_back(place_.folder());
    if (!steps_.run(command)) {
      throw explain_failure(place_.folder(), "python -m venv failed",
                            "if it asks for python3-venv: list it under system_packages");
    }
  }

  void make_uv_environment() {
    const Path uv = find_uv(steps_.host());
    if (uv.empty()) {
      throw ProvisionError(
          "uv was not found on this server",
          "install it there (docs.astral.sh/uv), or set python: {manager: venv} in configs.yaml");
    }
    if (can_keep()) {
      return;
    }
    unfinished_.begin();
    steps_.begin("making the environment with uv");
    Steps::Command command{uv, "venv", "--seed"};
    if (setup_.has_site_packages) {
      command.emplace_back("--system-site-packages");
    }
    if (!setup_.new_version.empty()) {
      command.insert(command.end(), {"--python", setup_.new_version});
    }
    command.push_back(place_.folder());
    if (!steps_.run(command)) {
      throw explain_failure(place_.folder(), "uv venv failed");
    }
  }

  void make_conda_environment() {
    if (place_.python().is_own_conda) {
      if (can_keep()) {
        return;
      }
      if (!steps_.run({conda_program(), "--version"})) {
        throw ProvisionError("there is no working conda in " + place_.conda().string(),
                             "python.conda in configs.yaml names the folder of an installation; remove it to "
                             "have one created in the home directory");
      }
      create_with_conda();
      return;
    }
    // An environment outside our conda's folder does not need it.
    if (!place_.folder().string().starts_with(place_.conda().string() + "/") && can_keep()) {
      return;
    }
    remove_broken_conda();
    if (!is_program(conda_program())) {
      install_conda(steps_, place_, setup_);
    }
    if (!can_keep()) {
      create_with_conda();
    }
  }
  void remove_broken_conda() {
    const std::string conda = place_.conda();
    if (exists(conda + ".unfinished")) {
      steps_.begin("removing a half-finished Miniconda");
      if (!steps_.run({"rm", "-rf", conda})) {
        throw ProvisionError("cannot remove " + conda);
      }
    } else if (exists(conda) && !steps_.run_silently({conda_program(), "--version"})) {
      // Move it aside, because it belongs to the user.
      std::string time = format_utc_time(read_wall_clock());
      std::erase_if(time, [](char c) { return c < '0' || c > '9'; });
      const std::string aside = conda + ".broken." + time;
      if (::rename(conda.c_str(), aside.c_str()) != 0) {
        throw ProvisionError("cannot move the broken " + conda + " aside");
      }
      steps_.note("moved a conda that does not run to " + aside);
    }
  }
  void create_with_conda() {
    const std::string& version = setup_.new_version;
    unfinished_.begin();
    steps_.begin("making the environment with Python " + version);
    if (!steps_.run({conda_program(), "create", "-y", "-q", "-p", place_.folder(),
                     version.empty() ? "python" : "python=" + version, "pip"})) {
      throw explain_failure(place_.folder(), "conda create failed",
                            "if it asks to accept terms of service: accept them on the server, or set "
                            "python.miniconda_url to Miniforge");
    }
    if (!is_program(interpreter())) {
      throw ProvisionError("conda create made no python in " + place_.folder().string());
    }
  }

  Steps& steps_;
  const PythonPlace& place_;
  const wire::Setup& setup_;
  UnfinishedEnvironment unfinished_;
  bool is_adopted_ = false;
};

}  // namespace

void UnfinishedEnvironment::begin() const {
  if (!make_open_folders(place_.scripts()) || !put_open_file(file(), place_.folder().string() + "\n")) {
    throw explain_failure(place_.scripts(), "cannot write to " + place_.scripts().string());
  }
}

bool UnfinishedEnvironment::has_begun() const {
  return has_stamp(file(), place_.folder().string());
}

void UnfinishedEnvironment::end() const {
  ::unlink(file().c_str());
}

void make_environment(Steps& steps, const PythonPlace& place, const wire::Setup& setup) {
  const EnvironmentLock lock(steps, place);
  EnvironmentMaker(steps, place, setup).make();
}

}  // namespace remote::agent
