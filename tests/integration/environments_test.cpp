// Kinds of environments that a test machine lacks (uv, sudo with apt-get, another architecture: fake programs
// come first in the server's PATH), pip's options with an index on loopback, and cleanup after an
// interruption.

#include <csignal>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <remote/error.hpp>
#include <sys/socket.h>

#include "base/hashing.hpp"
#include "support/local_connection.hpp"
#include "support/paths.hpp"
#include "support/prepare_world.hpp"
#include "support/processes.hpp"
#include "support/waiting.hpp"

namespace remote::servers {
namespace {

// A folder of programs that come before the server's own.
struct StandIns {
  TempFolder bin;
  void add(const std::string& name, const std::string& script) const {
    write(bin.path() / name, "#!/bin/sh\n" + script);
    fs::permissions(bin.path() / name, fs::perms::owner_all);
  }
  sandbox::SandboxOptions options() const {
    sandbox::SandboxOptions options;
    options.environment["PATH"] =
        bin.path().string() + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    return options;
  }
};

class Environments : protected StandIns, public PrepareTest {
 protected:
  Environments() : PrepareTest(options()) {}
  std::string at_home(const std::string& name) const {
    return read_file_if_there(sandbox_.home(0) / name).value_or("");
  }
};

TEST_F(Environments, UvMakesTheEnvironmentAndInstalls) {
  add("uv", R"sh(
printf '%s\n' "$*" >>"$HOME/uv.log"
if [ "$1" = venv ]; then
  for env in "$@"; do :; done
  exec /usr/bin/python3 -m venv "$env"
fi
python=$4
shift 4
exec "$python" -m pip install "$@"
)sh");
  use(config::PythonManager::uv);
  config_.python.version = "3.11";
  make_wheel(here("my wheels"), "1.0");
  write(here("requirements.txt"), "tinywheel\n");
  const PrepareReport report = prepare_once();
  EXPECT_EQ(report.setup, StepResult::done);
  EXPECT_EQ(report.packages, StepResult::done);
  EXPECT_EQ(in_environment("python -c 'import sys, tinywheel; print(sys.prefix, tinywheel.VALUE)'"),
            there(".venv").string() + " 1.0");
  EXPECT_EQ(at_home("uv.log"), "venv --seed --python 3.11 " + there(".venv").string() +
                                   "\npip install --python " + there(".venv/bin/python").string() +
                                   " --no-index --find-links " + there("my wheels").string() +
                                   " -r requirements.txt\n");
  EXPECT_EQ(prepare_once().packages, StepResult::skipped);
}

TEST_F(Environments, WithoutUvTheFixIsNamed) {
  use(config::PythonManager::uv);
  const Error error = failure();
  EXPECT_EQ(error.reason(), "uv was not found on this server");
  EXPECT_THAT(error.hint(), HasSubstr("manager: venv"));
}

TEST_F(Environments, APyprojectIsInstalledInPlace) {
  use(config::PythonManager::venv);
  make_wheel(here("my wheels"), "1.0");
  write(here("pyproject.toml"),
        "[project]\nname = 'mine'\nversion = '1'\n[build-system]\nrequires = []\n"
        "build-backend = 'backend'\nbackend-path = ['.']\n");
  write(here("lib/mine.py"), "NAME = 'mine'\n");
  // Its own build backend (PEP 660), so that nothing has to be downloaded.
  write(here("backend.py"), R"py(
import os, zipfile

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    info = "mine-1.dist-info"
    with zipfile.ZipFile(f"{wheel_directory}/mine-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("mine.pth", os.path.abspath("lib") + "\n")
        wheel.writestr(f"{info}/METADATA",
                       "Metadata-Version: 2.1\nName: mine\nVersion: 1\nRequires-Dist: tinywheel\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"mine.pth,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return "mine-1-py3-none-any.whl"

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    raise SystemExit("it is to be installed in place")
)py");
  const PrepareReport report = prepare_well();
  EXPECT_EQ(report.package_source, PackageSource::pyproject);
  EXPECT_EQ(report.packages, StepResult::done);
  EXPECT_EQ(in_environment("cd /; python -c 'import mine, tinywheel; print(mine.NAME, mine.__file__)'"),
            "mine " + there("lib/mine.py").string());
  EXPECT_EQ(prepare_once().packages, StepResult::skipped);
}

TEST_F(Environments, OfAnApplicationTheDependenciesAloneAreInstalled) {
  use(config::PythonManager::venv);
  make_wheel(here("my wheels"), "1.0");
  write(here("data/__init__.py"), "");
  write(here("models/__init__.py"), "");
  const std::string project = "[project]\nname = 'mine'\nversion = '1'\ndependencies = ['tinywheel']\n";
  write(here("pyproject.toml"), project);
  EXPECT_EQ(prepare_well().packages, StepResult::done);
  EXPECT_EQ(in_environment("python -c 'import tinywheel; print(tinywheel.VALUE)'"), "1.0");
  EXPECT_EQ(prepare_once().packages, StepResult::skipped);
  // A project that names a build system finds no package to build.
  make_wheel(here("my wheels"), "2.0");
  write(here("backend.py"),
        "def build_editable(*_):\n"
        "    raise SystemExit(\"error: Multiple top-level packages discovered in a flat-layout: ['data']\")\n"
        "build_wheel = build_editable\n");
  write(here("pyproject.toml"), project.substr(0, project.find("['")) +
                                    "['tinywheel==2.0']\n[build-system]\nrequires = []\n"
                                    "build-backend = 'backend'\nbackend-path = ['.']\n");
  const PrepareReport report = prepare_well();
  EXPECT_EQ(report.packages, StepResult::done);
  EXPECT_THAT(report.notes, ::testing::Contains(HasSubstr("but not the project itself")));
  EXPECT_EQ(in_environment("python -c 'import tinywheel; print(tinywheel.VALUE)'"), "2.0");
}

TEST_F(Environments, ALockedPipfileIsInstalledAsItIsLocked) {
  if (!find_program("/usr/bin/pipenv")) {
    GTEST_SKIP() << "pipenv is not installed";
  }
  use(config::PythonManager::system);
  make_wheel(here("my wheels"), "1.0");
  make_wheel(here("my wheels"), "2.0");
  const std::string source =
      "\n[[source]]\nname = 'none'\nurl = 'http://127.0.0.1:9/simple'\nverify_ssl = false\n";
  write(here("Pipfile"),
        source + "[packages]\ntinywheel = {path = \"./my wheels/tinywheel-2.0-py3-none-any.whl\"}\n");
  write(here("Pipfile.lock"),
        R"({"_meta": {"hash": {"sha256": "0"}, "pipfile-spec": 6, "requires": {},
  "sources": [{"name": "none", "url": "http://127.0.0.1:9/simple", "verify_ssl": false}]},
 "default": {"tinywheel": {"path": "./my wheels/tinywheel-1.0-py3-none-any.whl"}}, "develop": {}})");
  EXPECT_EQ(prepare_well().package_source, PackageSource::pipenv);
  EXPECT_EQ(in_environment("python -c 'import tinywheel; print(tinywheel.VALUE)'"), "1.0");
  EXPECT_EQ(prepare_once().packages, StepResult::skipped);
  write(here("Pipfile.lock"), read_file(here("Pipfile.lock")) + "\n");
  EXPECT_EQ(prepare_once().packages, StepResult::done) << "the lock file counts";
}

// index_url and extra_index_urls are used; a constraint chooses between their versions.
TEST_F(Environments, IndexesAndConstraintsReachPip) {
  const WebFolder www;
  make_wheel(www.folder() / "extra/tinywheel", "1.0");
  make_wheel(www.folder() / "extra/tinywheel", "2.0");
  fs::create_directories(www.folder() / "main/tinywheel");
  config_.python = {};
  config_.python.manager = config::PythonManager::venv;
  config_.python.index_url = www.url() + "/main";
  config_.python.extra_index_urls = {www.url() + "/extra"};
  config_.python.constraints = {"limits.txt"};
  write(here("limits.txt"), "tinywheel<2\n");
  write(here("requirements.txt"), "tinywheel\n");
  prepare_once();
  EXPECT_EQ(in_environment("python -c 'import tinywheel; print(tinywheel.VALUE)'"), "1.0");
  EXPECT_THAT(www.log(), HasSubstr("GET /main/tinywheel/ "));
  EXPECT_THAT(www.log(), HasSubstr("GET /extra/tinywheel/tinywheel-1.0-py3-none-any.whl "));
  write(here("limits.txt"), "tinywheel<3\n");
  EXPECT_EQ(prepare_once().packages, StepResult::done) << "the constraint counts";
}

// sudo, apt-get and dpkg-query are fakes; `id` reports that the user is not root.
TEST_F(Environments, ARemovalThatIsInterruptedIsDoneAgain) {
  use(config::PythonManager::venv);
  prepare_once();
  const fs::path cfg = there(".venv/pyvenv.cfg");
  add("rm", R"sh(
case "$*" in
  *-rf*/.venv)
    /bin/rm -f "$2/pyvenv.cfg"
    exit 1
    ;;
esac
exec /bin/rm "$@"
)sh");
  steps_.force = true;
  EXPECT_THAT(failure().reason(), HasSubstr("cannot remove"));
  EXPECT_FALSE(fs::exists(cfg));
  add("rm", "exec /bin/rm \"$@\"\n");
  steps_.force = false;
  EXPECT_EQ(prepare_once().setup, StepResult::done);
  EXPECT_TRUE(fs::exists(cfg));

  // An environment that someone else left without this file would run the system's Python.
  fs::remove(cfg);
  fs::remove(there(".venv/.remote-setup"));
  EXPECT_THAT(failure().reason(), HasSubstr("is not a virtual environment"));
}

class SystemPackages : public Environments {
 protected:
  SystemPackages() {
    add("id", "echo 1000\n");
    add("sudo", R"sh(
[ "$1" = -n ] || exit 9
shift
if [ -e "$HOME/asks" ]; then
  echo "sudo: a password is required" >&2
  exit 1
fi
"$@"
)sh");
    add("apt-get", R"sh(
echo "$* $DEBIAN_FRONTEND" >>"$HOME/apt.log"
case $1 in
  update) : >"$HOME/lists" ;;
  install)
    for package in "$@"; do :; done
    [ -e "$HOME/lists" ] || { echo "E: Unable to locate package $package" >&2; exit 100; }
    : >"$HOME/installed.$package"
    ;;
esac
)sh");
    add("dpkg-query", R"sh(
for package in "$@"; do :; done
[ ! -e "$HOME/installed.$package" ] || printf 'install ok installed'
)sh");
    use(config::PythonManager::system);
    config_.system_packages = {"libtest1"};
  }
};

TEST_F(SystemPackages, AreInstalledBySudoWithoutAPassword) {
  EXPECT_EQ(prepare_once().setup, StepResult::done);
  EXPECT_EQ(at_home("apt.log"),
            "install -y -o DPkg::Lock::Timeout=600 -- libtest1 noninteractive\nupdate noninteractive\n"
            "install -y -o DPkg::Lock::Timeout=600 -- libtest1 noninteractive\n");
  EXPECT_EQ(prepare_once().setup, StepResult::skipped);
  fs::remove(sandbox_.home(0) / "installed.libtest1");
  EXPECT_EQ(prepare_once().setup, StepResult::done) << "one that was removed is missed";
}

TEST_F(SystemPackages, ASudoThatAsksIsAClearError) {
  write(sandbox_.home(0) / "asks", "");
  const Error error = failure();
  EXPECT_EQ(error.reason(), "system_packages needs sudo without a password, and sudo asks for one");
  EXPECT_THAT(error.hint(), HasSubstr("libtest1"));
  EXPECT_THAT(error.hint(), HasSubstr("NOPASSWD"));
  EXPECT_EQ(at_home("apt.log"), "");
}

TEST_F(CondaTest, AnInterruptedInstallerEndsAndTheNextTimeItIsMadeAnew) {
  write(sandbox_.home(0) / "hang-half-way", "");
  const fs::path hanging = sandbox_.home(0) / "hanging";
  Cancel cancel;
  std::thread person([&] {
    test::eventually([&] { return fs::exists(hanging); });
    cancel.cancel();  // Ctrl-C
  });
  recorder_ = Recorder();
  EXPECT_THROW(prepare(*connection_, config_, server(), steps_, recorder_, cancel), Interrupted);
  person.join();
  connection_.reset();  // as when the program exits
  ASSERT_TRUE(fs::exists(hanging));
  for (const std::string& pid : split_words(read_file(hanging))) {
    EXPECT_TRUE(test::eventually([&] { return !test::lives(std::stoi(pid)); }))
        << "process " << pid << " goes on";
  }
  // The script itself ends after its installer.
  const auto leftover = [this] {
    for (const auto& entry : fs::directory_iterator(sandbox_.home(0))) {
      if (entry.path().string().find(".installer.") != std::string::npos) {
        return true;
      }
    }
    return false;
  };
  EXPECT_TRUE(test::eventually([&] { return !leftover(); })) << "the downloaded installer is left behind";
  ASSERT_TRUE(fs::exists(conda() / "bin")) << "it was not in the middle of it";
  fs::remove(sandbox_.home(0) / "hang-half-way");
  connection_ = connect();
  EXPECT_EQ(prepare_once().setup, StepResult::done);
  EXPECT_EQ(in_environment("python -c 'print(1)'"), "1");
}

// Processes on a server whose command line contains this.
std::vector<pid_t> processes_of(const fs::path& home, const std::string& word) {
  std::vector<pid_t> found;
  for (const pid_t pid : test::processes_with("HOME=" + home.string())) {
    if (test::command_line(pid).find(word) != std::string::npos) {
      found.push_back(pid);
    }
  }
  return found;
}

// The whole program, interrupted, or killed as when its machine goes away. pip waits for an index that never
// answers, and must not be left behind waiting.
TEST_F(Environments, NoPipStaysBehindWhenTheProgramIsInterruptedOrGone) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 16), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  std::ofstream file(here(".remote/configs.yaml"));
  file << "name: my_project\npython: {manager: venv, index_url: 'http://127.0.0.1:" << ntohs(address.sin_port)
       << "/simple'}\nservers:\n  node-1: {hostname: 127.0.0.1, port: " << *server().port
       << ", username: " << *server().username << ", private_key: .remote/sandbox/id_ed25519, "
       << "known_hosts: .remote/sandbox/known_hosts}\n";
  file.close();
  write(here("requirements.txt"), "tinywheel\n");
  const auto pips = [this] { return processes_of(sandbox_.home(0), "pip"); };
  for (const int signal : {SIGINT, SIGKILL}) {
    SubprocessSpec spec;
    spec.argv = {test::remote_binary, "--quiet", "--project", sandbox_.project().string(), "prepare"};
    spec.set_env = {{"HOME", here("").string()}};
    spec.new_session = true;
    Subprocess program(spec);
    pollfd slot{listener.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&slot, 1, 300000), 1) << "pip does not come";
    const UniqueFd pip(::accept(listener.get(), nullptr, nullptr));
    EXPECT_THAT(pips(), Not(IsEmpty()));
    program.kill(signal);
    EXPECT_EQ(program.wait(), signal == SIGINT ? ExitStatus::exited(130) : ExitStatus::signalled(SIGKILL));
    EXPECT_TRUE(test::eventually([&] { return pips().empty(); })) << "pip goes on after signal " << signal;
  }
}

}  // namespace
}  // namespace remote::servers
