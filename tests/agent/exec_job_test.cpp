#include "agent/job/exec_job.hpp"

#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/container/enter_container.hpp"
#include "agent/fake_host.hpp"
#include "agent/host/files.hpp"
#include "agent/host/run.hpp"
#include "agent/job/job_spec.hpp"
#include "agent/source_folder.hpp"
#include "agent/started.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;
using Manager = wire::EnvironmentManager;

const std::string exec_id(32, 'a');

// Real processes become jobs in a project whose name has a space.
class ExecJob : public ::testing::Test, protected test::FakeHost {
 protected:
  ExecJob() {
    fs::create_directories(job());
    fs::create_directories(jobs() / ".bin/digest");
    for (const char* name : {"lib", "python"}) {
      fs::create_directory_symlink(fs::path(test::source_folder) / "src/server" / name, program() / name);
    }
    put(program() / "remote-agent", "");
    spec.program = "digest";
    spec.project = project();
    environment = {{"HOME", home()},
                   {"PATH", programs().string() + ":/usr/bin:/bin"},
                   {"LC_ALL", "C"},
                   {"REMOTE_JOB_ID", exec_id}};
  }

  fs::path project() const { return home() / "my proj"; }
  fs::path jobs() const { return project() / ".jobs"; }
  fs::path job() const { return jobs() / exec_id; }
  fs::path program() const { return jobs() / ".bin/digest"; }
  std::string read(const std::string& name) const { return read_file(Path(job() / name)).value_or(""); }

  // A process in the job's folder, with this environment, that writes to the job's output files.
  pid_t start(const std::function<int()>& run) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::clearenv();
      for (const auto& [name, value] : environment) {
        ::setenv(name.c_str(), value.c_str(), 1);
      }
      const int out = ::open((job() / "job.out").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
      const int err = ::open((job() / "job.err").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
      ::dup2(out, STDOUT_FILENO);
      ::dup2(err, STDERR_FILENO);
      const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      ::dup2(null, STDIN_FILENO);
      _exit(::chdir(job().c_str()) == 0 ? run() : 126);
    }
    return pid;
  }
  static int wait_for(pid_t pid) {
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  pid_t start_spec() {
    fs::remove(job() / spec_name);
    EXPECT_TRUE(create_spec(Path(job()), spec));
    return start([this]() -> int { exec_job(Path(job())); });
  }
  int run(const std::string& command) {
    spec.command = command;
    return wait_for(start_spec());
  }
  std::string run_out(const std::string& command) {
    EXPECT_EQ(run(command), 0) << read("job.err");
    EXPECT_EQ(read("job.err"), "");
    return read("job.out");
  }
  std::string run_descriptors() { return run_out("ls /proc/self/fd"); }
  std::string run_failure(const std::string& command = "true") {
    EXPECT_EQ(run(command), 127) << read("job.out");
    return read("job.err");
  }

  wire::JobSpec spec;
  std::map<std::string, std::string> environment;
};

TEST_F(ExecJob, TheCommandRunsInTheProjectWithItsVariables) {
  spec.variables = {{"A", "it's $HOME\n\"x\""}, {"BYTES", "\xff\xfe \xed\xb2\x80"}, {"EMPTY", ""}};
  EXPECT_EQ(run_out("printf '%s|' \"$A\" \"$BYTES\" \"${EMPTY-none}\" \"$REMOTE_JOB_ID\"; pwd"),
            "it's $HOME\n\"x\"|\xff\xfe \xed\xb2\x80||" + exec_id + "|" + project().string() + "\n");
  EXPECT_EQ(fs::status(job() / spec_name).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(ExecJob, PathsAreInTheHomeDirectoryAndKeepTheNamesOfLinks) {
  fs::create_directory_symlink("my proj", home() / "link");
  for (const char* path : {"~/link", "link"}) {
    spec.project = path;
    EXPECT_EQ(run_out("pwd"), (home() / "link").string() + "\n") << path;
  }
}

TEST_F(ExecJob, ASimpleCommandIsTheProcessItself) {
  spec.command = "sleep 1000";
  const pid_t pid = start_spec();
  EXPECT_TRUE(test::eventually([&] {
    return read_file(Path("/proc/" + std::to_string(pid) + "/cmdline")) == std::string("sleep\0001000\0", 11);
  }));
  ::kill(pid, SIGTERM);
  EXPECT_EQ(wait_for(pid), 128 + SIGTERM);
}

TEST_F(ExecJob, WithoutBashItIsSh) {
  for (const char* name : {"sh", "readlink"}) {
    fs::create_symlink(fs::path("/bin") / name, programs() / name);
  }
  environment["PATH"] = programs();
  EXPECT_THAT(run_out("echo \"${BASH_VERSION-none}\""), "none\n");
  fs::remove(programs() / "sh");
  EXPECT_EQ(run_failure(), "remote: the server has no shell on its PATH\n");
}

TEST_F(ExecJob, ACommandOfAnyLengthRuns) {
  EXPECT_EQ(run_out("echo begun; : " + std::string(300'000, 'x') + "; echo \"it's over\""),
            "begun\nit's over\n");
}

TEST_F(ExecJob, ASpecThatCannotBeReadIsNamed) {
  put(job() / spec_name, "{\"odd\":1}\n");
  EXPECT_EQ(wait_for(start([this]() -> int { exec_job(Path(job())); })), 127);
  EXPECT_EQ(read("job.err"), "remote: cannot read " + (job() / spec_name).string() + "\n");
}

TEST_F(ExecJob, TheWorkingDirectoryMayBeAnother) {
  for (const char* name : {"sub", "-", "a b"}) {
    fs::create_directories(project() / name);
  }
  fs::create_directories(home() / "data");
  const auto folder_of = [&](const std::string& workdir) {
    spec.variables = {{"REMOTE_WORKDIR", workdir}};
    return run_out("pwd");
  };
  EXPECT_EQ(folder_of(""), project().string() + "\n");
  EXPECT_EQ(folder_of("sub"), (project() / "sub").string() + "\n");
  EXPECT_EQ(folder_of("-"), (project() / "-").string() + "\n");
  EXPECT_EQ(folder_of("a b"), (project() / "a b").string() + "\n");
  EXPECT_EQ(folder_of("~/data"), (home() / "data").string() + "\n");
  EXPECT_EQ(folder_of("~"), home().string() + "\n");
  EXPECT_EQ(folder_of("/"), "/\n");
  spec.variables = {{"REMOTE_WORKDIR", "gone"}};
  EXPECT_EQ(run_failure(),
            "remote: the project has no folder gone here: send it with `remote rsync`, or name another with "
            "--workdir\n");
}

TEST_F(ExecJob, AMissingProjectIsNamed) {
  spec.project = home() / "gone";
  EXPECT_EQ(run_failure(), "remote: cannot enter the project folder\n");
}

TEST_F(ExecJob, ATreeIsEnteredBehindTheEnvironment) {
  spec.tree = std::string(64, 'd');
  EXPECT_EQ(run_failure(), "remote: the tree of this launch is gone: start it again\n");
  const fs::path tree = jobs() / ".trees" / spec.tree;
  fs::create_directories(tree / "sub");
  spec.variables = {{"REMOTE_WORKDIR", "sub"}};
  EXPECT_EQ(run_out("pwd; echo \"$REMOTE_TREE $REMOTE_PROJECT_FOLDER\""),
            (tree / "sub").string() + "\n" + tree.string() + " " + project().string() + "\n");
}

TEST_F(ExecJob, LeasedDevicesAndAttemptsAreVariables) {
  const std::string show =
      "echo \"$GPUS $MASTER_PORT $INIT_METHOD $RESTART_COUNT ${PET_RDZV_ID-none} ${gone-none}\"";
  spec.variables = {{"MASTER_ADDR", "n1"}, {"MASTER_PORT", "1"}, {"INIT_METHOD", "tcp://x:1"}};
  spec.is_leased = true;
  EXPECT_EQ(run_failure(), "remote: cannot read the resources leased for it\n");
  put(job() / "devices", "leased gpus=0,1 cpus=0\nGPUS=0,1=x\ngone=1\nMASTER_PORT=2\n");
  EXPECT_EQ(run_out(show), "0,1=x 2 tcp://n1:2  none none\n");
  put(job() / "again", "60 n1\n");
  EXPECT_EQ(run_out(show), "0,1=x 2 tcp://n1:2 0 none none\n");
  put(job() / "attempt", "number 3\nRESTART_COUNT=2\nMASTER_PORT=5\n");
  spec.variables.push_back({"PET_RDZV_ID", "run"});
  EXPECT_EQ(run_out(show), "0,1=x 5 tcp://n1:5 2 run-2 none\n");
  spec.variables[2].value = "file:///shared/x";
  EXPECT_EQ(run_out(show), "0,1=x 5 file:///shared/x.2 2 run-2 none\n");
  fs::remove(job() / "attempt");
  fs::create_directory(job() / "attempt");
  EXPECT_EQ(run_failure(), "remote: cannot read the number of its attempt\n");
}

TEST_F(ExecJob, AJobWaitsForTheTurnOfAll) {
  spec.is_leased = true;
  put(job() / "queue", std::string(32, 'b') + "\n{}\n");
  ASSERT_EQ(::mkfifo((job() / ".turn").c_str(), 0600), 0);
  const auto run_with = [&](const std::string& word) {
    spec.command = "echo ran";
    const pid_t pid = start_spec();
    const int fifo = ::open((job() / ".turn").c_str(), O_WRONLY | O_CLOEXEC);
    EXPECT_THAT(read_file(Path("/proc/" + std::to_string(pid) + "/environ")).value_or(""),
                HasSubstr(std::string("REMOTE_JOB_ID=") + exec_id))
        << "a process that waits is not found by its job's variable";
    put(job() / "devices", "leased gpus=0\n");
    EXPECT_EQ(::write(fifo, word.data(), word.size()), static_cast<ssize_t>(word.size()));
    ::close(fifo);
    return wait_for(pid);
  };
  EXPECT_EQ(run_with("go\n"), 0);
  EXPECT_EQ(read("job.out"), "ran\n");
  EXPECT_EQ(run_with(""), 127);
  EXPECT_EQ(read("job.err"), "remote: the job that waited for the turn of all is gone\n");
  // The first job itself takes the lease; these lease terms are invalid.
  put(job() / "queue", exec_id + "\nodd\n");
  EXPECT_THAT(run_failure(), HasSubstr("\nremote: its turn did not come\n"));
}

// ---- The Python environment

std::string environment_text(const wire::PythonEnvironment& environment) {
  const auto& names = wire::enum_names<Manager>;
  return "__project='" + environment.code + "' __scripts='" + environment.scripts + "' __env='" +
         environment.folder + "' __isolated='" + (environment.is_isolated ? "1" : "") + "' __other='" +
         environment.other_folder + "' __conda='" + environment.conda +
         "'\n__manager=" + std::string(names.at(static_cast<std::size_t>(environment.manager))) +
         "\n. \"$remote_program/lib/activate.sh\"";
}

// activate.sh and the agent set the same variables for every kind of environment.
TEST_F(ExecJob, EntersEnvironmentsAsTheScriptDoes) {
  const fs::path scripts = project() / ".remote-scripts";
  const auto expect_same = [&](const char* what) {
    SCOPED_TRACE(what);
    const std::string show =
        "env | grep -Ev '^(_|SHLVL|OLDPWD)=' | sort; for name in PYTHONHOME; do echo \"${!name-unset}\"; "
        "done";
    spec.activate = "not a command";  // must not run
    const std::string native = run_out(show);
    const wire::PythonEnvironment typed = *spec.environment;
    spec.activate = environment_text(typed);
    spec.environment.reset();
    EXPECT_EQ(run_out(show), native);
    spec.environment = typed;
    return native;
  };
  spec.variables = {{"PYTHONHOME", "/odd"}};
  wire::PythonEnvironment& typed = spec.environment.emplace();
  typed = {.code = project(), .scripts = scripts, .folder = home() / "envs/mine"};
  for (const Manager manager : {Manager::none, Manager::system, Manager::venv, Manager::conda}) {
    typed.manager = manager;
    EXPECT_THAT(expect_same("nothing is there"),
                HasSubstr("PYTHONPATH=" + project().string() + ":" + project().string() + "/src\n"));
  }
  for (const fs::path& folder :
       {fs::path(typed.folder), home() / "other", home() / "conda", scripts, home() / "pipenv"}) {
    put_program(folder / "bin/python", "");
  }
  typed.manager = Manager::venv;
  EXPECT_THAT(expect_same("venv"), HasSubstr("VIRTUAL_ENV=" + typed.folder + "\nunset\n"));
  typed.is_isolated = true;
  EXPECT_THAT(expect_same("an isolated venv"), HasSubstr("PYTHONNOUSERSITE=1\n"));
  typed.manager = Manager::system;
  EXPECT_THAT(expect_same("system"), HasSubstr("PATH=" + (scripts / "bin").string() + ":"));
  typed.manager = Manager::none;
  EXPECT_THAT(expect_same("none"), Not(HasSubstr("VIRTUAL_ENV")));
  typed.manager = Manager::conda;
  typed.conda = home() / "conda";
  EXPECT_THAT(expect_same("an environment of another conda"), Not(HasSubstr("CONDA_EXE")));
  EXPECT_THAT(expect_same("an isolated one"), HasSubstr("PYTHONNOUSERSITE=1\n"));
  typed.is_isolated = false;
  put_program(home() / "conda/bin/conda", "");
  EXPECT_THAT(expect_same("conda"), HasSubstr("CONDA_DEFAULT_ENV=mine\n"));
  typed.other_folder = home() / "other";
  EXPECT_THAT(expect_same("the other is not needed"), HasSubstr("CONDA_DEFAULT_ENV=mine\n"));
  typed.folder = home() / "gone";
  EXPECT_THAT(expect_same("the other"), HasSubstr("CONDA_DEFAULT_ENV=other\n"));
  typed.folder = typed.conda;
  EXPECT_THAT(expect_same("base"), HasSubstr("CONDA_DEFAULT_ENV=base\n"));
  put(project() / "Pipfile", "");
  expect_same("a Pipfile without an environment");
  put(scripts / "pipenv", (home() / "pipenv").string() + "\n");
  EXPECT_THAT(expect_same("a Pipfile"), HasSubstr("PIPENV_ACTIVE=1\n"));
  typed.folder = home() / "envs/mine";
  typed.is_isolated = true;
  spec.variables = {{"PYTHONNOUSERSITE", ""}};
  EXPECT_THAT(expect_same("the user's own value"), HasSubstr("PYTHONNOUSERSITE=\n"));
  spec.variables = {{"PYTHONPATH", "/mine"}, {"PYTHONUNBUFFERED", ""}};
  EXPECT_THAT(expect_same("own variables"), HasSubstr("/src:/mine\nPYTHONUNBUFFERED=\n"));
  spec.variables = {{"PYTHONPATH", project().string() + ":" + project().string() + "/src"}};
  EXPECT_THAT(expect_same("entered before"),
              HasSubstr("PYTHONPATH=" + project().string() + ":" + project().string() + "/src\n"));
}

// Without a prologue the agent sets them; with one, a shell does.
TEST_F(ExecJob, DefaultsReplaceNoValueOfTheLoginTheSpecOrThePrologue) {
  const std::string show =
      "echo ${OMP_NUM_THREADS-none} ${GLOO_SOCKET_IFNAME-none} ${NCCL_SOCKET_IFNAME-none}";
  spec.defaults = {{"OMP_NUM_THREADS", "1"}, {"GLOO_SOCKET_IFNAME", "eth0"}, {"NCCL_SOCKET_IFNAME", "=eth0"}};
  const auto expect_out = [&](const std::string& expected) {
    spec.environment = {.code = project(), .scripts = project()};
    spec.activate = "not run";
    EXPECT_EQ(run_out(show), expected + "\n");
    spec.environment.reset();
    spec.activate = "true";
    EXPECT_EQ(run_out(show), expected + "\n") << "by a shell";
  };
  expect_out("1 eth0 =eth0");
  environment["OMP_NUM_THREADS"] = "7";
  environment["GLOO_SOCKET_IFNAME"] = "";
  expect_out("7 =eth0");
  spec.variables = {{"OMP_NUM_THREADS", "5"}, {"NCCL_SOCKET_IFNAME", "ib0"}};
  expect_out("5 ib0");
  spec.variables.clear();
  put(home() / ".nccl.conf", "# NCCL_SOCKET_IFNAME=x\nNCCL_SOCKET_IFNAMES=x\n");
  expect_out("7 =eth0");
  put(home() / ".nccl.conf", "NCCL_DEBUG=WARN\nNCCL_SOCKET_IFNAME=ib0\n");
  expect_out("7 none");
  put(home() / "other.conf", "");
  environment["NCCL_CONF_FILE"] = home() / "other.conf";
  expect_out("7 =eth0");
  spec.activate = "export GLOO_SOCKET_IFNAME=ib1 NCCL_SOCKET_IFNAME=ib1";
  EXPECT_EQ(run_out(show), "7 ib1 ib1\n");
}

TEST_F(ExecJob, HooksOfCondasPackagesRun) {
  spec.environment = {.manager = Manager::conda,
                      .code = project(),
                      .scripts = project() / "s",
                      .folder = home() / "env",
                      .conda = home() / "conda"};
  put_program(home() / "env/bin/python", "");
  put(home() / "env/etc/conda/activate.d/hook.sh", "export HOOK=\"$CONDA_PREFIX\"\n");
  spec.activate = environment_text(*spec.environment);
  EXPECT_EQ(run_out("echo $HOOK"), (home() / "env").string() + "\n");
}

TEST_F(ExecJob, AnActivationThatFailsEndsTheJob) {
  spec.activate = "__failed=3";
  EXPECT_EQ(run_failure("echo ran"), "remote: the prologue in configs.yaml failed (exit code 3)\n");
  spec.activate = "false";
  EXPECT_EQ(run_failure("echo ran"), "remote: cannot enter the Python environment\n");
  EXPECT_EQ(read("job.out"), "");
  spec.activate = "";
  const std::string descriptors = run_descriptors();
  spec.activate = "x=\"it's\"; export x; test $# = 0";
  fs::create_directory(project() / "sub");
  spec.variables = {{"REMOTE_WORKDIR", "sub"}};
  EXPECT_EQ(run_out("echo \"$x\"; pwd"), "it's\n" + (project() / "sub").string() + "\n");
  EXPECT_EQ(run_descriptors(), descriptors) << "that of the script is closed";
}

TEST_F(ExecJob, TheAccountsVariablesAreThoseOfTheCommand) {
  environment["REMOTE_HID_TMOUT"] = "7";
  environment["REMOTE_HID_GREP_COLOR"] = "account's";
  spec.variables = {{"GREP_COLOR", "job's"}};
  const std::string show = "echo \"$TMOUT $GREP_COLOR\"; env | grep -c REMOTE_HID; :";
  EXPECT_EQ(run_out(show), "7 job's\n0\n");
  spec.activate = "true";
  EXPECT_EQ(run_out(show), "7 job's\n0\n") << "by a shell";
  spec.activate = "";
  environment["REMOTE_HID_FUNCTIONS"] = "greet () {  echo hello\n}\ndeclare -fx greet\n";
  EXPECT_EQ(run_out("greet; " + show), "hello\n7 job's\n0\n");
}

TEST_F(ExecJob, FlagsOfTheAccountAreThoseOfTheCommandAlone) {
  environment["SHELLOPTS"] = "braceexpand:errexit:hashall:nounset";
  for (const char* activate : {"", "false; [ -z \"$none\" ]"}) {
    spec.activate = activate;
    EXPECT_EQ(run("false; echo ran"), 1) << activate << read("job.err");
    EXPECT_EQ(read("job.out"), "");
  }
}

TEST_F(ExecJob, PythonsStartupFilesComeFirst) {
  const std::string folder = (job() / "python").string();
  spec.startup_files = wire::StartupFiles::python;
  EXPECT_EQ(run_out("echo \"$PYTHONPATH\"; ls " + exec_id + " 2>/dev/null; ls '" + folder + "'"),
            folder + "\nremote_debugger.py\nsitecustomize.py\n");
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  spec.startup_files = wire::StartupFiles::torch_agent;
  spec.activate = "export PYTHONPATH=/mine";
  EXPECT_EQ(run_out("echo \"$PYTHONPATH\"; ls '" + folder + "'"),
            folder +
                ":/mine\nremote_debugger.py\nremote_torch_agent.py\nremote_torch_rendezvous.py\n"
                "sitecustomize.py\n");
  EXPECT_EQ(read("python/sitecustomize.py"), read_file(Path(program() / "python/sitecustomize.py")));
  fs::remove_all(folder);
  put(folder, "a file");
  EXPECT_EQ(run("echo \"$PYTHONPATH\""), 0);
  EXPECT_EQ(read("job.out"), "/mine\n");
  EXPECT_EQ(read("job.err"), "remote: --enable-stacks is not possible in this folder\n");
}

TEST_F(ExecJob, ProgramsOfTheLauncherComeFirst) {
  fs::permissions(program() / "remote-agent", fs::perms::owner_all);
  spec.programs = {"remote-mpi-agent", "remote-mpi-rank"};
  const std::string folder = (job() / "bin").string();
  const std::string show =
      "echo \"${PATH%%:*}|$REMOTE_JOB_FOLDER|$REMOTE_PROJECT_FOLDER\"; readlink \"${PATH%%:*}\"/*";
  const std::string agent = (program() / "remote-agent").string() + "\n";
  const std::string expected =
      folder + "|" + job().string() + "|" + project().string() + "\n" + agent + agent;
  EXPECT_EQ(run_out(show), expected);
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  // A shell enters the environment; the links of the last attempt are replaced.
  spec.activate = "PATH=/mine:$PATH";
  EXPECT_EQ(run_out(show), expected);
  EXPECT_THAT(run_out("echo \"$PATH\""), StartsWith(folder + ":/mine:"));
  fs::remove_all(folder);
  put(folder, "a file");
  EXPECT_EQ(run_failure(),
            "remote: cannot write the launcher's programs into the job's folder: is the disk full?\n");
}

TEST_F(ExecJob, ProgramsOfTheLauncherNeedAPathWithoutAColon) {
  fs::rename(project(), home() / "a:b");
  spec.programs = {"remote-mpi-agent"};
  spec.project = home() / "a:b";
  fs::create_directory_symlink("a:b", project());
  EXPECT_EQ(
      run_failure(),
      "remote: this launcher needs a project folder without a ':' in its name, because it extends PATH\n");
}

// access() also fails in a folder that is mounted noexec.
TEST_F(ExecJob, ProgramsOfTheLauncherRunFromMemoryUntilTheJobEnds) {
  spec.programs = {"remote-mpi-agent"};
  fs::permissions(program() / "remote-agent", fs::perms::owner_read);
  const std::vector<std::string> lines = split(
      run_out("link=$(readlink \"${PATH%%:*}\"/remote-mpi-agent); echo \"$link\"; readlink \"$link\""), '\n');
  ASSERT_GE(lines.size(), 2U);
  EXPECT_EQ(lines[1], find_real_path("/proc/self/exe"));
  EXPECT_THAT(lines[0], ::testing::MatchesRegex("/proc/[0-9]+/exe"));
  EXPECT_TRUE(test::eventually([&] { return read_link(lines[0]).empty(); }));
}

TEST_F(ExecJob, TheTokenOfAWebPageComesFromItsFile) {
  put(job() / "web", "20001 0123abcd\n");
  EXPECT_EQ(run_out("echo $REMOTE_WEB_PORT $JUPYTER_TOKEN"), "20001 0123abcd\n");
  EXPECT_EQ(read(spec_name).find("0123abcd"), std::string::npos);
}

// ---- Containers

class ExecContainer : public ExecJob {
 protected:
  ExecContainer() {
    spec.container.emplace().engine = "docker";
    spec.container->image = "the-image";
    for (const char* engine : {"docker", "podman", "apptainer", "singularity"}) {
      put_program(programs() / engine,
                  "for word; do printf '%s\\n' \"$word\"; done >\"$HOME/words\"; env >\"$HOME/env\"");
    }
    environment["PATH"] = programs().string() + ":/usr/bin:/bin";
  }
  // The arguments of the engine.
  std::vector<std::string> words() {
    EXPECT_EQ(run("true"), 0) << read("job.err");
    return split(trim(read_file(Path(home() / "words")).value_or("")), '\n');
  }
  static std::string mount(const fs::path& path) {
    return "type=bind,source=" + path.string() + ",target=" + path.string();
  }
  // Runs a command in the container.
  int run_inside(const std::string& command,
                 std::vector<std::string> files = {"job.out", "job.err", ".note", "-"}) {
    spec.command = command;
    fs::remove(job() / spec_name);
    EXPECT_TRUE(create_spec(Path(job()), spec));
    put(job() / ".note", std::string(100, ' ') + "\n");
    files.insert(files.begin(), {"inside", job().string()});
    files.insert(files.end(), {home().string(), "27", project().string()});
    return wait_for(start([&]() -> int {
      ::signal(SIGTERM, SIG_DFL);
      return run_exec_job(static_cast<int>(files.size()), pointers_to(files).data());
    }));
  }
};

TEST_F(ExecContainer, DockerGetsTheFoldersAndNoVariable) {
  spec.variables = {{"NAME", "s3cr3t"}};
  spec.container->args = {"-v", "/data with blanks:/data", "--ipc=private"};
  const std::vector<std::string> all = words();
  ASSERT_GT(all.size(), 20U);
  EXPECT_THAT(std::vector(all.begin(), all.begin() + 4),
              ElementsAre("run", "--rm", "--name", "remote-" + exec_id));
  EXPECT_THAT(all, IsSupersetOf({std::string("--pull"), std::string("never"), std::string("none"),
                                 "REMOTE_JOB_ID=" + exec_id, mount(project()), std::string("--ipc"),
                                 std::string("--network"), std::string("--group-add"),
                                 std::to_string(::geteuid()) + ":" + std::to_string(::getegid())}));
  EXPECT_THAT(all, Not(Contains(mount(job())))) << "it is in the project";
  const std::vector<std::string> last{"the-image",
                                      (program() / "remote-agent").string(),
                                      "exec-job",
                                      "inside",
                                      job().string(),
                                      "job.out",
                                      "job.err",
                                      ".note",
                                      "-",
                                      home().string()};
  const auto image = std::ranges::find(all, "the-image");
  ASSERT_GE(all.end() - image, 12);
  EXPECT_EQ(std::vector(image, image + 10), last);
  EXPECT_EQ(all.back(), project().string());
  // For most options the last one counts, so the user's come later.
  EXPECT_LT(std::ranges::find(all, "--ipc"), std::ranges::find(all, "--ipc=private"));
  EXPECT_THAT(read_file(Path(home() / "words")).value(), Not(HasSubstr("s3cr3t")));
  EXPECT_THAT(read_file(Path(home() / "env")).value(), Not(HasSubstr("REMOTE_JOB_ID")));
  EXPECT_THAT(read("container"), StartsWith("engine docker\nPATH " + programs().string()));
  EXPECT_EQ(read("bin/python"), "#!/bin/sh\nexec python3 \"$@\"\n");
  EXPECT_EQ(fs::status(job() / "bin/python").permissions(), fs::perms(0755));
}

TEST_F(ExecContainer, EnginesDiffer) {
  spec.container->is_rootless = true;
  EXPECT_THAT(words(), Contains("0:0"));
  EXPECT_THAT(words(), Not(Contains("--group-add")));
  spec.container->engine = "podman";
  EXPECT_THAT(words(), IsSupersetOf({"--userns", "keep-id"}));
  std::vector<std::string> all = words();
  EXPECT_EQ(*(std::ranges::find(all, "--user") + 1), fmt::format("{}:{}", ::geteuid(), ::getegid()));
  spec.container->is_rootless = false;
  EXPECT_THAT(words(), Not(Contains("--userns")));
  spec.container->args = {"--network=none"};
  EXPECT_THAT(words(), Not(Contains("--network")));
}

TEST_F(ExecContainer, ApptainerMayHaveItsOlderName) {
  spec.container->engine = "apptainer";
  EXPECT_THAT(run_failure(), HasSubstr("remote: there is no image the-image on "));
  put(project() / "the-image", "");
  std::vector<std::string> all = words();
  EXPECT_THAT(all, IsSupersetOf({std::string("exec"), std::string("--cleanenv"),
                                 project().string() + ":" + project().string(), "REMOTE_JOB_ID=" + exec_id}));
  fs::remove(programs() / "apptainer");
  fs::remove(home() / "words");
  EXPECT_EQ(words().size(), all.size());
  fs::remove(programs() / "singularity");
  EXPECT_THAT(run_failure(), HasSubstr("remote: there is no apptainer on "));
  spec.container->image = "docker://x";
  EXPECT_THAT(run_failure(), HasSubstr("remote: there is no apptainer on "));
}

TEST_F(ExecContainer, FoldersElsewhereAreMountedToo) {
  fs::create_directory(home() / "with,comma");
  put(job() / "init_file", "2\n" + (home() / "shared").string() + "\n");
  fs::rename(project(), home() / "real");
  fs::create_directory_symlink("real", project());
  EXPECT_THAT(words(), IsSupersetOf({mount(home() / "real"), mount(project()), mount(home() / "shared")}));
  put(home() / "real/.jobs" / exec_id / "init_file", "2\n" + (home() / "with,comma").string() + "\n");
  EXPECT_THAT(words(), Contains((home() / "with,comma").string() + ":" + (home() / "with,comma").string()));
  put(home() / "real/.jobs" / exec_id / "init_file", "2\n/a,b:c\n");
  EXPECT_EQ(run_failure(), "remote: a container cannot be given a folder with this name: /a,b:c\n");
}

TEST_F(ExecContainer, AFailedPrologueEndsTheJobBeforeTheEngine) {
  spec.container->prologue = "__failed=4";
  EXPECT_EQ(run_failure(), "remote: the prologue in configs.yaml failed (exit code 4)\n");
  EXPECT_FALSE(fs::exists(home() / "words"));
}

TEST_F(ExecContainer, InsideTheCommandRunsWithItsOwnOutputs) {
  spec.variables = {{"NAME", "value"}};
  EXPECT_EQ(run_inside("echo \"$NAME\"; echo err >&2; pwd; umask; exit 3"), 3);
  EXPECT_EQ(read("job.out"), "value\n" + project().string() + "\n0027\n");
  EXPECT_EQ(read("job.err"), "err\n");
  EXPECT_EQ(trim(read(".note")), "");
}

TEST_F(ExecContainer, ASignalIsNotedAndACodeIsNot) {
  EXPECT_EQ(run_inside("kill -TERM $$"), 143);
  EXPECT_EQ(trim(read(".note")), "signal 15");
  EXPECT_EQ(run_inside("exit 143"), 143);
  EXPECT_EQ(trim(read(".note")), "");
}

TEST_F(ExecContainer, SignalsToTheFirstProcessAreIgnored) {
  EXPECT_EQ(run_inside("kill -TERM $PPID; kill -INT $PPID; trap -p; exit 5"), 5);
  EXPECT_EQ(read("job.out"), "") << "the command has the default handlers";
}

TEST_F(ExecContainer, InsideAHomeThatCannotBeWrittenIsReplaced) {
  environment["HOME"] = "/";
  spec.environment = {.code = "~/my proj", .scripts = "~/s"};
  spec.activate = "x";
  EXPECT_EQ(run_inside("echo \"$HOME $PYTHONPATH\""), 0) << read("job.err");
  EXPECT_THAT(read("job.out"),
              testing::AnyOf(StartsWith("/tmp "), StartsWith((job() / "home").string() + " ")));
  EXPECT_THAT(read("job.out"), HasSubstr(" " + project().string() + ":"))
      << "the paths of the environment are those of the home directory outside";
}

TEST_F(ExecContainer, AnImageMayHavePython3Only) {
  for (const char* name : {"sh", "bash", "ls"}) {
    fs::create_symlink(fs::path("/bin") / name, programs() / name);
  }
  environment["PATH"] = programs();
  put_program(job() / "bin/python", "echo ours");
  for (const char* activate : {"", "true"}) {
    spec.activate = activate;
    EXPECT_EQ(run_inside("python"), 0) << read("job.err");
    EXPECT_EQ(read("job.out"), "ours\n");
  }
}

TEST_F(ExecContainer, TheWorkingDirectoryOfAContainer) {
  spec.container->workdir = "sub";
  EXPECT_EQ(run_inside("pwd"), 127);
  EXPECT_EQ(read("job.err"), "remote: the container has no folder sub (workdir in configs.yaml)\n");
  fs::create_directories(project() / "sub/deep");
  EXPECT_EQ(run_inside("pwd"), 0);
  EXPECT_EQ(read("job.out"), (project() / "sub").string() + "\n");
  spec.variables = {{"REMOTE_WORKDIR", "sub/deep"}};
  EXPECT_EQ(run_inside("pwd"), 0);
  EXPECT_EQ(read("job.out"), (project() / "sub/deep").string() + "\n");
}

TEST_F(ExecContainer, UnderSlurmTheInsideGetsTheVariablesOfTheRank) {
  environment["RANK"] = "3";
  environment["SLURM_JOB_ID"] = "7'\n8";
  environment["CUDA_VISIBLE_DEVICES"] = "1";
  environment["OTHER"] = "x";
  put(job() / "container", "engine apptainer\n");
  put(project() / "the-image", "");
  spec.container->engine = "apptainer";
  spec.command = "true";
  ASSERT_TRUE(create_spec(Path(job()), spec));
  EXPECT_EQ(wait_for(start([&]() -> int {
              exec_slurm_job(Path(job()), {"o", "e", "n"});
            })),
            0)
      << read("job.err");
  EXPECT_THAT(split(read_file(Path(home() / "words")).value(), '\n'),
              IsSupersetOf({"o", "e", "n", "n.variables"}));
  EXPECT_EQ(read("container"), "engine apptainer\n") << "the start has written it";
  for (const char* name : {"RANK", "SLURM_JOB_ID", "CUDA_VISIBLE_DEVICES", "OTHER"}) {
    environment.erase(name);
  }
  const std::string command = "echo \"$RANK $SLURM_JOB_ID $CUDA_VISIBLE_DEVICES ${OTHER-none}\"";
  EXPECT_EQ(run_inside(command, {"job.out", "job.err", ".note", "n.variables"}), 0);
  EXPECT_EQ(read("job.out"), "3 7'\n8 1 none\n");
  EXPECT_EQ(run_inside(command, {"job.out", "job.err", ".note", "gone"}), 127);
  EXPECT_EQ(read("job.err"), "remote: cannot read the variables of this rank inside the container\n");
}

TEST_F(ExecContainer, ATmpOfTheServerIsNotAHome) {
  EXPECT_EQ(
      choose_home(Path(job()),
                  "22 1 0:20 / / rw - overlay overlay rw\n23 22 0:21 / /tmp/data rw - ext4 /dev/a rw\n"),
      "/tmp");
  EXPECT_EQ(
      choose_home(Path(job()),
                  "22 1 0:20 / / rw - overlay overlay rw\n23 22 8:1 /tmp /tmp rw,nosuid - ext4 /dev/a rw\n"),
      (job() / "home").string());
  EXPECT_EQ(fs::status(job() / "home").permissions(), fs::perms::owner_all);
}

}  // namespace
}  // namespace remote::agent
