// setup, rsync and update-packages on real sshd processes, with the server's own python3, venv, pip and
// pipenv. Nothing reaches the network: wheels are made here, and conda's installer is a stand-in that behaves
// as Miniconda's does, served over HTTP on loopback.

#include "servers/prepare.hpp"

#include <array>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/sha256.hpp"
#include "base/strings.hpp"
#include "base/subprocess.hpp"
#include "servers/python_env.hpp"
#include "ssh/connector.hpp"
#include "support/test_sandbox.hpp"

namespace remote::servers {
namespace {
namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* python = "/usr/bin/python3";  // what the practice servers have

void write(const fs::path& file, const std::string& content) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
}

// A wheel with one module `tinywheel` whose VALUE is the version.
void make_wheel(const fs::path& folder, const std::string& version) {
  fs::create_directories(folder);
  SubprocessSpec spec;
  spec.argv = {python, "-", folder.string(), version};
  const RunResult made = run_subprocess(spec, R"py(
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
  void step(const std::string& name) override { steps.push_back(name); }
  void detail(const std::string& text, std::optional<double>) override { details.push_back(text); }
  void transfer(const ssh::RsyncProgress&) override {}
  void failed_output(const std::string& lines, const std::string& log) override {
    stderr_lines = lines;
    log_folder = log;
  }
  std::vector<std::string> steps;
  std::vector<std::string> details;
  std::string stderr_lines;
  std::string log_folder;
};

class PrepareTest : public ::testing::Test {
 protected:
  explicit PrepareTest(SandboxOptions options = {})
      : sandbox_(1, std::move(options)), config_(sandbox_.config()) {
    steps_.setup = steps_.sync = steps_.packages = true;
    steps_.sync_options.pipe_program = REMOTE_BINARY;
    ssh::ConnectorOptions connector_options;
    connector_options.user_config = "/dev/null";
    connection_ = ssh::make_connector(config_, connector_options)->connect(server(), Cancel());
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
  // What a command prints in the environment; stderr too.
  std::string in_environment(const std::string& command) {
    ssh::ExecRequest request;
    request.input = ssh::wrap_script(activation(config_, server()) + command + " 2>&1\n");
    return std::string(trim(connection_->exec(request).out));
  }
  fs::path here(const std::string& name) const { return sandbox_.project() / name; }
  fs::path there(const std::string& name) const { return sandbox_.home(0) / config_.name / name; }

  test::TestSandbox sandbox_;
  config::Config config_;
  std::unique_ptr<ssh::Connection> connection_;
  PrepareSteps steps_;
  Recorder recorder_;
};

TEST_F(PrepareTest, SystemGivesAPlainPythonAndTheProjectsModules) {
  use(config::PythonManager::system);
  write(here("src/inner.py"), "NAME = 'inner'\n");
  write(here("outer.py"), "NAME = 'outer'\n");
  const PrepareReport report = prepare_once();
  EXPECT_EQ(report.setup, StepResult::done);
  EXPECT_EQ(report.packages, StepResult::skipped);
  EXPECT_EQ(in_environment("python -c 'import inner, outer; print(inner.NAME, outer.NAME)'"), "inner outer");
  const PrepareReport again = prepare_once();
  EXPECT_EQ(again.setup, StepResult::skipped);
  EXPECT_THAT(again.files.changed, IsEmpty());
}

TEST_F(PrepareTest, VenvWithPackagesAndASecondTimeNothing) {
  use(config::PythonManager::venv);
  make_wheel(here("my wheels"), "1.0");
  write(here("requirements.txt"), "-r more.txt\n");
  write(here("more.txt"), "tinywheel==1.0\n");
  const PrepareReport first = prepare_once();
  EXPECT_EQ(first.setup, StepResult::done);
  EXPECT_EQ(first.packages, StepResult::done);
  EXPECT_EQ(in_environment("python -c 'import tinywheel; print(tinywheel.VALUE)'"), "1.0");
  EXPECT_EQ(in_environment("python -c 'import sys; print(sys.prefix)'"), there(".venv").string());
  const PrepareReport second = prepare_once();
  EXPECT_EQ(second.setup, StepResult::skipped);
  EXPECT_EQ(second.packages, StepResult::skipped);
  EXPECT_THAT(second.files.changed, IsEmpty());

  // A file that requirements.txt names counts too.
  make_wheel(here("my wheels"), "2.0");
  write(here("more.txt"), "tinywheel==2.0\n");
  EXPECT_EQ(prepare_once().packages, StepResult::done);
  EXPECT_EQ(in_environment("python -c 'import tinywheel; print(tinywheel.VALUE)'"), "2.0");
  EXPECT_EQ(prepare_once().packages, StepResult::skipped);
  steps_.setup = steps_.sync = false;
  steps_.force = true;
  EXPECT_EQ(prepare_once().packages, StepResult::done);
}

TEST_F(PrepareTest, PipsErrorIsShownAndTheNextTimeItIsTriedAgain) {
  use(config::PythonManager::venv);
  make_wheel(here("my wheels"), "1.0");
  write(here("requirements.txt"), "no-such-package-anywhere\n");
  for (int i = 0; i < 2; ++i) {
    try {
      prepare_once();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "update-packages failed: pip could not install the packages");
    }
    EXPECT_THAT(recorder_.stderr_lines, HasSubstr("no-such-package-anywhere"));
    EXPECT_THAT(read_file(fs::path(recorder_.log_folder) / "stderr.log"),
                HasSubstr("No matching distribution found for no-such-package-anywhere"));
    EXPECT_EQ(read_file(fs::path(recorder_.log_folder) / "exit_code"), "1\n");
  }
}

TEST_F(PrepareTest, AnEnvironmentMadeOtherwiseIsMadeAnewWithItsPackages) {
  use(config::PythonManager::venv);
  make_wheel(here("my wheels"), "1.0");
  write(here("requirements.txt"), "tinywheel\n");
  prepare_once();
  config_.python.system_site_packages = true;
  const PrepareReport report = prepare_once();
  EXPECT_EQ(report.setup, StepResult::done);
  EXPECT_EQ(report.packages, StepResult::done);
  EXPECT_THAT(read_file(there(".venv/pyvenv.cfg")), HasSubstr("include-system-site-packages = true"));
}

TEST_F(PrepareTest, AHalfFinishedVenvIsMadeAnewAndAForeignOneIsKept) {
  use(config::PythonManager::venv);
  fs::create_directories(there(".venv/bin"));
  try {
    prepare_once();  // not ours, and of no use: never removed
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.reason(), HasSubstr("has no working Python"));
  }
  EXPECT_TRUE(fs::exists(there(".venv/bin")));
  write(there(".remote-scripts/setup.unfinished"), there(".venv").string() + "\n");  // ours, cut short
  EXPECT_EQ(prepare_once().setup, StepResult::done);
  EXPECT_TRUE(fs::exists(there(".venv/bin/python")));
  EXPECT_FALSE(fs::exists(there(".remote-scripts/setup.unfinished")));

  // One that somebody else made is taken over, and stays when it is to be made anew.
  fs::remove(there(".venv/.remote-setup"));
  write(there(".venv/theirs"), "");
  EXPECT_THAT(prepare_once().notes, Contains(HasSubstr("took over")));
  EXPECT_EQ(prepare_once().setup, StepResult::skipped);
  steps_.force = true;
  prepare_once();
  EXPECT_TRUE(fs::exists(there(".venv/theirs")));
}

TEST_F(PrepareTest, TheSystemsPythonIsNotTouchedWhereTheDistributionOwnsIt) {
  use(config::PythonManager::system);
  write(here("requirements.txt"), "pip\n");
  fs::create_directories(here("my wheels"));
  ASSERT_TRUE(fs::exists("/usr/lib/python3.11/EXTERNALLY-MANAGED") ||
              fs::exists("/usr/lib/python3.12/EXTERNALLY-MANAGED") ||
              fs::exists("/usr/lib/python3.13/EXTERNALLY-MANAGED"))
      << "this test is for a distribution that marks its Python";
  EXPECT_EQ(prepare_once().packages, StepResult::done);  // all is there
  EXPECT_EQ(prepare_once().packages, StepResult::skipped);
  make_wheel(here("my wheels"), "1.0");
  write(here("requirements.txt"), "pip\ntinywheel\n");
  try {
    prepare_once();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.reason(), HasSubstr("PEP 668"));
    EXPECT_THAT(error.hint(), HasSubstr("system_site_packages: true"));
  }
  EXPECT_THAT(in_environment("python -c 'import tinywheel'"), HasSubstr("No module named"));
}

TEST_F(PrepareTest, APythonThatIsNotThereIsAClearError) {
  use(config::PythonManager::venv);
  config_.python.version = "3.2";
  try {
    prepare_once();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.reason(), "there is no Python 3.2 on this server");
    EXPECT_THAT(error.hint(), HasSubstr("conda"));
  }
}

TEST_F(PrepareTest, APyprojectThatOnlyConfiguresToolsInstallsNothing) {
  use(config::PythonManager::venv);
  write(here("pyproject.toml"), "[tool.black]\nline-length = 99\n");
  EXPECT_EQ(prepare_once().package_source, "none");
}

TEST_F(PrepareTest, PipenvWhereThereIsAPipfile) {
  if (!find_program("/usr/bin/pipenv")) {
    GTEST_SKIP() << "pipenv is not installed";
  }
  use(config::PythonManager::system);
  make_wheel(here("my wheels"), "1.0");
  write(here("Pipfile"), "[packages]\ntinywheel = {path = \"./my wheels/tinywheel-1.0-py3-none-any.whl\"}\n");
  PrepareReport report;
  try {
    report = prepare_once();
  } catch (const Error& error) {
    FAIL() << error.message() << "\n" << recorder_.stderr_lines;
  }
  EXPECT_EQ(report.package_source, "pipenv");
  EXPECT_EQ(report.packages, StepResult::done);
  EXPECT_EQ(in_environment("python -c 'import tinywheel; print(tinywheel.VALUE)'"), "1.0");
  EXPECT_THAT(in_environment("python -c 'import sys; print(sys.prefix)'"), HasSubstr("virtualenvs"));
  EXPECT_EQ(prepare_once().packages, StepResult::skipped);
}

// An installer as Miniconda's is: -b -p PREFIX; conda that makes environments; hooks of packages.
constexpr const char* installer = R"sh(#!/bin/sh
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
  CondaTest() {
    write(www_.path() / "Miniconda3-x86_64.sh", installer);
    write(www_.path() / "Miniconda3-aarch64.sh", installer);
    SubprocessSpec spec;
    spec.argv = {python, "-u", "-c",
                 "import functools, http.server, sys\n"
                 "handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])\n"
                 "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)\n"
                 "print(server.server_port)\n"
                 "server.serve_forever()\n",
                 www_.path().string()};
    spec.pipe_stdout = true;
    spec.pipe_stderr = true;
    http_.emplace(spec);
    std::array<char, 16> port{};
    const ssize_t count = ::read(http_->stdout_fd.get(), port.data(), port.size());
    use(config::PythonManager::conda);
    config_.python.miniconda_url =
        "http://127.0.0.1:" + std::string(trim({port.data(), static_cast<std::size_t>(count)})) +
        "/Miniconda3-{arch}.sh";
    steps_.default_python = "3.11";
  }
  fs::path conda() const { return sandbox_.home(0) / "miniconda"; }
  fs::path environment() const { return conda() / "envs/my_project_env"; }

  TempFolder www_;
  std::optional<Subprocess> http_;
};

TEST_F(CondaTest, InstalledOnceWithTheLaptopsVersion) {
  make_wheel(here("my wheels"), "1.0");
  write(here("requirements.txt"), "tinywheel\n");
  config_.python.miniconda_sha256 = {{"x86_64", sha256_hex(installer)}, {"aarch64", sha256_hex(installer)}};
  EXPECT_EQ(prepare_once().setup, StepResult::done);
  EXPECT_EQ(read_file(conda() / "created"), "python=3.11\npip\n");
  EXPECT_EQ(in_environment("python -c 'import sys, tinywheel; print(sys.prefix, tinywheel.VALUE)'"),
            environment().string() + " 1.0");
  EXPECT_EQ(in_environment("echo $FROM_HOOK $CONDA_DEFAULT_ENV"), environment().string() + " my_project_env");
  const PrepareReport again = prepare_once();
  EXPECT_EQ(again.setup, StepResult::skipped);
  EXPECT_EQ(again.packages, StepResult::skipped);
  for (const auto& entry : fs::directory_iterator(sandbox_.home(0))) {
    EXPECT_THAT(entry.path().string(), Not(HasSubstr("installer"))) << "left behind";
  }
  steps_.default_python = "3.12";  // another laptop: no reason to make it anew
  EXPECT_EQ(prepare_once().setup, StepResult::skipped);
}

TEST_F(CondaTest, AWrongChecksumInstallsNothing) {
  config_.python.miniconda_sha256 = {{"x86_64", std::string(64, '0')}, {"aarch64", std::string(64, '0')}};
  try {
    prepare_once();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.reason(), HasSubstr(sha256_hex(installer)));
    EXPECT_THAT(error.hint(), HasSubstr("miniconda_sha256"));
  }
  EXPECT_FALSE(fs::exists(conda()));
}

TEST_F(CondaTest, AnInstallationThatWasCutShortIsMadeAnew) {
  write(sandbox_.home(0) / "fail-half-way", "");
  EXPECT_THROW(prepare_once(), Error);
  ASSERT_TRUE(fs::exists(conda() / "bin"));
  ASSERT_FALSE(fs::exists(conda() / "bin/conda"));
  fs::remove(sandbox_.home(0) / "fail-half-way");
  EXPECT_EQ(prepare_once().setup, StepResult::done);
  EXPECT_EQ(in_environment("python -c 'print(1)'"), "1");
}

TEST_F(CondaTest, ABrokenCondaOfSomebodyElseIsMovedAside) {
  write(conda() / "precious", "theirs");
  const PrepareReport report = prepare_once();
  EXPECT_THAT(report.notes, Contains(HasSubstr("miniconda.broken")));
  bool kept = false;
  for (const auto& entry : fs::directory_iterator(sandbox_.home(0))) {
    kept = kept || fs::exists(entry.path() / "precious");
  }
  EXPECT_TRUE(kept);
}

TEST_F(CondaTest, AnUnreachableMirrorIsNamed) {
  config_.python.miniconda_url = "http://127.0.0.1:9/none.sh";
  try {
    prepare_once();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.reason(), "cannot download http://127.0.0.1:9/none.sh");
    EXPECT_THAT(error.hint(), HasSubstr("miniconda_url"));
  }
}

}  // namespace
}  // namespace remote::servers
