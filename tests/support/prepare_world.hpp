#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "servers/prepare.hpp"
#include "servers/python_env.hpp"
#include "ssh/connector.hpp"
#include "support/paths.hpp"
#include "support/test_sandbox.hpp"

// For tests that prepare a server with a real sshd, the server's own python3, and wheels made here. A script
// replaces Miniconda's installer, behaves like it, and is served over HTTP on loopback.

namespace remote::servers {
namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

inline constexpr const char* python = "/usr/bin/python3";  // as on the practice servers

inline void write(const fs::path& file, const std::string& content) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
}

// Makes a wheel with one module `tinywheel` whose VALUE is the version.
inline void make_wheel(const fs::path& folder, const std::string& version) {
  fs::create_directories(folder);
  SubprocessSpec spec;
  spec.argv = {python, "-", folder.string(), version};
  const ExecResult made = run_subprocess(spec, R"py(
import sys, zipfile
folder, version = sys.argv[1:]
info = f"tinywheel-{version}.dist-info"
with zipfile.ZipFile(f"{folder}/tinywheel-{version}-py3-none-any.whl", "w") as wheel:
    wheel.writestr("tinywheel.py", f"VALUE = '{version}'\n")
    wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tinywheel\nVersion: {version}\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(f"{info}/RECORD", f"tinywheel.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
)py");
  ASSERT_TRUE(made.status.success()) << made.err;
}

struct Recorder : PrepareListener {
  void step(PrepareStep step) override { steps.push_back(step); }
  void detail(const std::string& text, std::optional<double>) override { details.push_back(text); }
  void transfer(const TransferProgress&) override {}
  void failed_output(const std::string& lines, const std::string& log) override {
    stderr_lines = lines;
    log_folder = log;
  }
  std::vector<PrepareStep> steps;
  std::vector<std::string> details;
  std::string stderr_lines;
  std::string log_folder;
};

// Practice servers and a connector for them.
class SandboxTest : public ::testing::Test {
 protected:
  explicit SandboxTest(int nodes, sandbox::SandboxOptions options = {})
      : sandbox_(nodes, std::move(options)), config_(sandbox_.config()) {}

  std::unique_ptr<ssh::Connection> connect(std::size_t index = 0) const {
    ssh::ConnectorOptions connector_options;
    connector_options.user_config = "/dev/null";
    connector_options.masters = sandbox_.masters();
    return ssh::make_connector(config_, connector_options)->connect(config_.servers[index], Cancel());
  }
  fs::path here(const std::string& name) const { return sandbox_.project() / name; }
  fs::path there(const std::string& name, std::size_t index = 0) const {
    return sandbox_.home(index) / config_.name / name;
  }

  test::TestSandbox sandbox_;
  config::Config config_;
};

class PrepareTest : public SandboxTest {
 protected:
  explicit PrepareTest(sandbox::SandboxOptions options = {}) : SandboxTest(1, std::move(options)) {
    steps_.setup = steps_.sync = steps_.packages = true;
    steps_.sync_options.pipe_program = test::remote_binary;
    connection_ = connect();
  }

  const config::Server& server() const { return config_.servers[0]; }
  void use(config::PythonManager manager) {
    config_.python = {};
    config_.python.manager = manager;
    config_.python.find_links = {"my wheels"};
    config_.python.no_index = true;
  }
  PrepareReport prepare_once() {
    recorder_ = Recorder();
    return prepare(*connection_, config_, server(), steps_, recorder_, Cancel());
  }
  // Prepares; must succeed.
  PrepareReport prepare_well() {
    try {
      return prepare_once();
    } catch (const Error& error) {
      ADD_FAILURE() << error.message() << "\n" << recorder_.stderr_lines;
      return {};
    }
  }
  // Prepares; must fail.
  Error failure() {
    try {
      prepare_once();
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "it did not fail";
    return {"", ""};
  }
  // The output of a command in the environment, including stderr.
  std::string in_environment(const std::string& command) {
    ssh::ExecRequest request;
    request.command = "sh -s";
    request.input = inline_files(activation(config_, server())) + command + " 2>&1\n";
    return std::string(trim(connection_->exec(request).out));
  }

  std::unique_ptr<ssh::Connection> connection_;
  PrepareSteps steps_;
  Recorder recorder_;
};

// A folder served over HTTP on loopback.
class WebFolder {
 public:
  WebFolder() {
    SubprocessSpec spec;
    spec.argv = {python, "-u", "-c",
                 "import functools, http.server, sys\n"
                 "handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])\n"
                 "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)\n"
                 "print(server.server_port)\n"
                 "server.serve_forever()\n",
                 folder_.path().string()};
    spec.pipe_stdout = true;
    log_.reset(::open((log_folder_.path() / "log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    spec.pass_fds = {{log_.get(), 2}};
    server_.emplace(spec);
    std::array<char, 16> port{};
    const ssize_t count = ::read(server_->stdout_fd.get(), port.data(), port.size());
    port_ = trim({port.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))});
  }
  const fs::path& folder() const { return folder_.path(); }
  std::string url() const { return "http://127.0.0.1:" + port_; }
  // The requests, as logged by http.server.
  std::string log() const { return read_file(log_folder_.path() / "log"); }

 private:
  TempFolder folder_;
  TempFolder log_folder_;
  UniqueFd log_;
  std::optional<Subprocess> server_;
  std::string port_;
};

// An installer like Miniconda's: -b -p PREFIX; a conda that makes environments; package hooks.
inline constexpr const char* installer = R"sh(#!/bin/sh
prefix=
while [ $# -gt 0 ]; do
  case $1 in
    -b) ;;
    -p) prefix=$2; shift ;;
    *) echo "unknown option $1" >&2; exit 2 ;;
  esac
  shift
done
if [ -e "$prefix" ]; then
  echo "ERROR: File or directory already exists: '$prefix'" >&2
  exit 1
fi
mkdir -p "$prefix/bin" "$prefix/condabin" "$prefix/etc/profile.d" "$prefix/envs"
if [ -e "$HOME/fail-half-way" ]; then
  echo "out of luck" >&2
  kill -KILL $PPID
  exit 1
fi
if [ -e "$HOME/hang-half-way" ]; then
  sleep 1000 &
  echo "$$ $!" >"$HOME/hanging.new"
  mv "$HOME/hanging.new" "$HOME/hanging"
  wait
fi
cat >"$prefix/bin/conda" <<'EOF'
#!/bin/sh
case $1 in
  --version) echo "conda 99.9" ;;
  create)
    shift
    env=
    while [ $# -gt 0 ]; do
      case $1 in
        -y|-q) ;;
        -p) env=$2; shift ;;
        *) printf '%s\n' "$1" >>"${0%/bin/conda}/created" ;;
      esac
      shift
    done
    /usr/bin/python3 -m venv "$env" || exit 1
    mkdir -p "$env/etc/conda/activate.d"
    echo 'export FROM_HOOK="$CONDA_PREFIX"' >"$env/etc/conda/activate.d/plain.sh"
    echo 'array=(1 2); function f {' >"$env/etc/conda/activate.d/bash_only.sh"
    ;;
  *) exit 2 ;;
esac
EOF
chmod +x "$prefix/bin/conda"
echo '# conda' >"$prefix/etc/profile.d/conda.sh"
)sh";

class CondaTest : public PrepareTest {
 protected:
  explicit CondaTest(sandbox::SandboxOptions options = {}) : PrepareTest(std::move(options)) {
    write(www_.folder() / "Miniconda3-x86_64.sh", installer);
    write(www_.folder() / "Miniconda3-aarch64.sh", installer);
    use(config::PythonManager::conda);
    config_.python.miniconda_url = www_.url() + "/Miniconda3-{arch}.sh";
    steps_.default_python = "3.11";
  }
  fs::path conda() const { return sandbox_.home(0) / "miniconda"; }
  fs::path environment() const { return conda() / "envs/my_project_env"; }

  WebFolder www_;
};

}  // namespace remote::servers
