#include "agent/serve/foreground.hpp"

#include <csignal>
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/fake_host.hpp"
#include "agent/host/files.hpp"
#include "agent/job/job_spec.hpp"
#include "agent/serve_client.hpp"
#include "agent/source_folder.hpp"
#include "agent/started.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using wire::FrameKind;
using namespace std::chrono_literals;

const std::string run_job_id(32, 'b');

// The result of a request.
struct Ended {
  std::string out;
  std::string err;
  std::optional<wire::ProcessEnd> how;
  std::string refusal;
};

// Real processes, in a project whose name has a space.
class ForegroundRun : public ::testing::Test, protected test::FakeHost {
 protected:
  ForegroundRun() {
    fs::create_directories(project());
    host.set_aside.clear();
    host.set_aside["PATH"] = programs().string() + ":/usr/bin:/bin";
    request.project = "~/my proj";
  }

  fs::path project() const { return home() / "my proj"; }
  test::ServeClient& client() {
    if (!client_) {
      client_.emplace([](const wire::Request&, const std::string&, Stream&) {}, 1min, host);
    }
    return *client_;
  }
  // The next agent sees the host in its current state.
  void restart() { client_.reset(); }
  void begin(const std::string& command = "", std::uint32_t stream = 1) {
    request.command = command;
    client().ask_any(stream, request);
    if (!request.has_input) {
      client().send(FrameKind::end, stream);
    }
  }
  // Receives one frame. Returns false at the end of the answer.
  bool take_frame() {
    const wire::Frame frame = client().receive();
    if (frame.stream == 0) {
      return !::testing::Test::HasFailure();  // the agent's first message
    }
    if (frame.kind == FrameKind::data && !frame.payload.empty()) {
      (frame.payload[0] == 1 ? ended.out : ended.err).append(frame.payload.begin() + 1, frame.payload.end());
    } else if (frame.kind == FrameKind::message) {
      const wire::Reply reply = wire::decode<wire::Reply>(frame.payload);
      if (const auto* refusal = std::get_if<wire::Refusal>(&reply)) {
        ended.refusal = refusal->reason;
      } else if (const auto* ends = std::get_if<wire::RunEnds>(&reply)) {
        ended.how = ends->how;
      } else {
        EXPECT_TRUE(std::holds_alternative<wire::RunBegins>(reply));
      }
    }
    return frame.kind != FrameKind::end && !::testing::Test::HasFailure();
  }
  void take_until(const std::string& text) {
    while (ended.out.find(text) == std::string::npos && take_frame()) {
    }
  }
  const Ended& finish() {
    while (take_frame()) {
    }
    return ended;
  }
  const Ended& run(const std::string& command) {
    ended = {};
    begin(command);
    return finish();
  }
  void use_terminal() {
    host.root = "";
    request.terminal = wire::RunTerminal{"xterm", {101, 33}};
    request.has_input = true;
  }
  void type(const std::string& text) { client().send(FrameKind::data, 1, {text.begin(), text.end()}); }
  void enter_prologue(const std::string& text) {
    request.activate = "__prologue='" + replace_all(text, "'", "'\\''") + "' __project=\"$HOME/my proj\"\n" +
                       *read_file(Path(std::string(test::source_folder) + "/src/server/lib/prologue.sh"));
  }

  wire::RunRequest request;
  Ended ended;

 private:
  std::optional<test::ServeClient> client_;
};

TEST_F(ForegroundRun, OutputsStayApartAndTheExitCodeIsTheCommands) {
  run("echo here; echo there >&2; pwd; read -r line || echo empty; exit 3");
  EXPECT_EQ(ended.out, "here\n" + project().string() + "\nempty\n");
  EXPECT_EQ(ended.err, "there\n");
  EXPECT_EQ(ended.how, wire::ProcessEnd::exited(3));
}

TEST_F(ForegroundRun, ASignalAndItsExitCodeAreToldApart) {
  EXPECT_EQ(run("kill -KILL $$").how, wire::ProcessEnd::signalled(SIGKILL));
  EXPECT_EQ(run("exit 137").how, wire::ProcessEnd::exited(137));
  EXPECT_EQ(run("kill -BUS $$").how, wire::ProcessEnd::signalled(SIGBUS));
  EXPECT_EQ(run("kill -TERM $$").how, wire::ProcessEnd::signalled(SIGTERM));
}

TEST_F(ForegroundRun, TheCommandIsAProcessLikeThoseOfSshd) {
  run("ls /proc/self/fd; grep -E 'SigIgn|SigBlk' /proc/self/status");
  EXPECT_EQ(ended.out, "0\n1\n2\n3\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_F(ForegroundRun, AMissingProjectIsNamed) {
  request.project = "~/none";
  run("echo ran");
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(ended.err, "remote: the project's folder " + (home() / "none").string() +
                           " is not on this server; send it there first\n");
  EXPECT_EQ(ended.how, wire::ProcessEnd::exited(127));
}

TEST_F(ForegroundRun, VariablesAndTheWorkingFolder) {
  fs::create_directories(project() / "-");
  request.variables = {{"A", "it's $x"}, {"REMOTE_WORKDIR", "-"}};
  EXPECT_EQ(run("echo \"$A\"; pwd").out, "it's $x\n" + (project() / "-").string() + "\n");
  request.variables = {{"REMOTE_WORKDIR", "~"}};
  EXPECT_EQ(run("pwd").out, home().string() + "\n");
  request.variables = {{"REMOTE_WORKDIR", "none"}};
  EXPECT_THAT(run("echo ran").err, HasSubstr("the project has no folder none here"));
  EXPECT_EQ(ended.how, wire::ProcessEnd::exited(127));
  EXPECT_EQ(ended.out, "");
}

TEST_F(ForegroundRun, EntersThePythonEnvironmentWithoutAShell) {
  put_program(home() / "env/bin/python", "echo python");
  request.environment = wire::PythonEnvironment{.manager = wire::EnvironmentManager::venv,
                                                .code = "~/my proj",
                                                .scripts = "~/my proj/.remote-scripts",
                                                .folder = "~/env"};
  request.activate = "echo 'not evaluated'";
  EXPECT_EQ(run("python; echo $VIRTUAL_ENV").out, "python\n" + (home() / "env").string() + "\n");
}

TEST_F(ForegroundRun, AShellEntersAnEnvironmentOfCondaWithHooks) {
  put_program(home() / "env/bin/python", "");
  put(home() / "env/etc/conda/activate.d/x.sh", "");
  request.environment = wire::PythonEnvironment{.manager = wire::EnvironmentManager::conda,
                                                .code = "~/my proj",
                                                .scripts = "~/my proj/.remote-scripts",
                                                .folder = "~/env"};
  request.activate = "echo \"args=$#\"; export HOOKED='by a hook'";
  const std::string command = "echo \"$HOOKED\"; : " + std::string(100'000, 'x') + "; pwd";
  EXPECT_EQ(run(command).out, "args=0\nby a hook\n" + project().string() + "\n");
  request.activate = "false";
  EXPECT_EQ(run("echo ran").err, "remote: cannot enter the Python environment\n");
  EXPECT_EQ(ended.how, wire::ProcessEnd::exited(127));
}

TEST_F(ForegroundRun, TheCommandNeverRunsAfterAPrologueThatFailed) {
  enter_prologue("export FROM_PROLOGUE='a b'");
  EXPECT_EQ(run("echo \"$FROM_PROLOGUE\"").out, "a b\n");
  enter_prologue("exit 9");
  EXPECT_EQ(run("echo ran").err, "remote: the prologue in configs.yaml failed (exit code 9)\n");
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(ended.how, wire::ProcessEnd::exited(127));
}

TEST_F(ForegroundRun, TheAccountsEnvironmentIsRestored) {
  host.set_aside["TIME_STYLE"] = "full-iso";
  host.set_aside["LC_ALL"] = "C.UTF-8";
  host.set_aside["SHELLOPTS"] = "braceexpand:hashall:interactive-comments:nounset";
  host.environment["REMOTE_HID_FUNCTIONS"] = "greet () { echo hello; }\ndeclare -fx greet\n";
  request.variables = {{"TMOUT", "3"}};
  host.set_aside["TMOUT"] = "9";
  const std::string command =
      "echo $TIME_STYLE $LC_ALL $TMOUT; greet; env | grep REMOTE_HID; case $- in *u*) echo nounset ;; esac";
  EXPECT_EQ(run(command).out, "full-iso C.UTF-8 3\nhello\nnounset\n") << ended.err;
  enter_prologue("echo \"${TIME_STYLE-hidden}\" >&2");
  EXPECT_EQ(run(command).out, "full-iso C.UTF-8 3\nhello\nnounset\n");
  EXPECT_EQ(ended.err, "hidden\n");
}

TEST_F(ForegroundRun, APathWithoutTheUsualFolders) {
  host.set_aside["PATH"] = "/nowhere";
  EXPECT_EQ(run("echo $PATH").out, "/nowhere:/usr/bin:/bin\n");
}

TEST_F(ForegroundRun, InputIsPassedOnToItsEnd) {
  request.has_input = true;
  begin("cat; echo over");
  std::string sent;
  for (int i = 0; i < 40; ++i) {
    sent += std::string(10'000, static_cast<char>('a' + i % 26));
    type(sent.substr(sent.size() - 10'000));
    // Credit is granted for half of initial_credit at a time, so at most the other half may be in transit.
    while (ended.out.size() + 100'000 < sent.size() && take_frame()) {
    }
    if (i % 4 == 3) {
      client().send(FrameKind::credit, 1, {0, 0, 0x9c, 0x40});
    }
  }
  client().send(FrameKind::end, 1);
  EXPECT_EQ(finish().out, sent + "over\n");
}

TEST_F(ForegroundRun, InputThatNothingReadsDoesNotMatter) {
  request.has_input = true;
  begin("exec <&-; echo closed; sleep 0.3; exit 4");
  take_until("closed");
  type("x");
  type("y");
  EXPECT_EQ(finish().how, wire::ProcessEnd::exited(4));
  type("late");
  client().send(FrameKind::end, 1);
  request.has_input = false;
  EXPECT_EQ(run("echo again").out, "again\n") << "the number of the stream is free";
}

TEST_F(ForegroundRun, NoMoreOutputThanTheClientAllows) {
  begin("head -c 1000000 /dev/zero; echo end");
  std::size_t received = 0;
  while (received < wire::initial_credit) {
    const wire::Frame frame = client().receive();
    received += frame.kind == FrameKind::data ? frame.payload.size() : 0;
  }
  EXPECT_EQ(received, wire::initial_credit);
  client().send(FrameKind::credit, 1, {0, 0x0c, 0, 0});
  EXPECT_EQ(finish().how, wire::ProcessEnd::exited(0));
  EXPECT_THAT(ended.out, ::testing::EndsWith("end\n"));
}

TEST_F(ForegroundRun, WhatItLeavesInTheBackgroundLivesOnAndDoesNotHoldIt) {
  begin("sleep 1000 & echo $!; exit 5");
  const auto started = std::chrono::steady_clock::now();
  EXPECT_EQ(finish().how, wire::ProcessEnd::exited(5));
  EXPECT_LT(std::chrono::steady_clock::now() - started, test::patience);
  const auto pid = parse_number<int>(trim(ended.out)).value();
  client().close();
  EXPECT_EQ(::kill(pid, 0), 0);
  ::kill(pid, SIGKILL);
}

TEST_F(ForegroundRun, WhatTheBackgroundPrintsSoonAfterIsPassedOn) {
  EXPECT_EQ(run("(for i in 1 2 3 4 5 6; do sleep 0.2; echo $i; done) & echo 0").out, "0\n1\n2\n3\n4\n5\n6\n");
}

TEST_F(ForegroundRun, ItsProcessesEndWithTheClient) {
  begin("sleep 1000 & echo $! $$; trap 'echo terminated >&2; exit' TERM; wait");
  take_until("\n");
  const auto words = split_words(ended.out);
  client().close();
  for (const std::string& word : words) {
    EXPECT_NE(::kill(parse_number<int>(word).value(), 0), 0) << word;
  }
}

TEST_F(ForegroundRun, WhatIgnoresTermIsKilledFiveSecondsAfterAnAbort) {
  begin("trap '' TERM; echo $$; while :; do sleep 0.1; done");
  take_until("\n");
  const auto started = std::chrono::steady_clock::now();
  client().send(FrameKind::abort, 1);
  finish();
  EXPECT_GE(std::chrono::steady_clock::now() - started, 4900ms);
  EXPECT_NE(::kill(parse_number<int>(trim(ended.out)).value(), 0), 0);
  EXPECT_EQ(run("echo again").out, "again\n");
}

TEST_F(ForegroundRun, ATerminalHasItsTypeSizeAndChanges) {
  use_terminal();
  begin(
      "test -t 0 && test -t 1 && test -t 2 && stty size && echo $TERM && test \"$(tty)\" = $SSH_TTY; "
      "trap 'stty size; exit 5' WINCH; echo rea''dy; while :; do sleep 0.1; done");
  take_until("ready");
  EXPECT_THAT(ended.out, HasSubstr("33 101\r\nxterm\r\n"));
  client().send(FrameKind::message, 1, wire::encode(wire::ResizeTerminal{{120, 40}}));
  EXPECT_THAT(finish().out, HasSubstr("40 120\r\n"));
  EXPECT_EQ(ended.how, wire::ProcessEnd::exited(5));
  EXPECT_EQ(ended.err, "");
}

TEST_F(ForegroundRun, KeysOfATerminalHaveTheirMeaning) {
  use_terminal();
  // Runs no child process, because bash spins if it is interrupted while it starts one.
  begin(
      "trap 'echo inter''rupted; was_interrupted=yes' INT; echo rea''dy; until [ -n \"$was_interrupted\" ]; "
      "do :; done; read -r line; echo \"<$line>\"; cat; echo over");
  take_until("ready");
  type("\x03");
  take_until("interrupted");
  type(
      "abc\x7f"
      "d\n");
  take_until("<abd>");
  type("\x04");
  EXPECT_THAT(finish().out, HasSubstr("over"));
}

TEST_F(ForegroundRun, ATerminalIsHungUpWithTheClient) {
  use_terminal();
  begin("trap \"echo hup >'" + (home() / "hup").string() +
        "'; exit\" HUP; echo pid=$$=; while :; do sleep 0.1; done");
  take_until("=\r\n");
  client().close();
  EXPECT_TRUE(test::eventually([&] { return read_first_line(Path(home() / "hup")) == "hup"; }));
}

TEST_F(ForegroundRun, AServerWithoutTerminalsSaysSo) {
  use_terminal();
  host.root = root();
  begin("echo ran");
  EXPECT_EQ(finish().refusal, "it gives no terminal: No such file or directory");
  EXPECT_FALSE(ended.how);
  EXPECT_EQ(ended.out, "");
}

TEST_F(ForegroundRun, AShellHasTheProjectsFolderAndEnvironmentBehindItsStartFiles) {
  use_terminal();
  request.shell.emplace();
  request.activate = "export ENTERED=yes";
  request.variables = {{"PATH", "/my/env:/usr/bin:/bin"}, {"A", "it's"}};
  put(home() / ".profile", "PATH=/usr/bin:/bin; export PATH; export MINE=from-profile; cd /\n");
  for (const std::string shell : {"/bin/bash", "/bin/sh"}) {
    host.environment["SHELL"] = shell;
    restart();
    ended = {};
    begin();
    type("echo \"<$MINE|$A|$PATH|$ENTERED|$PWD|${REMOTE_SHELL_PATH-}>\"; exit 7\n");
    finish();
    EXPECT_THAT(ended.out,
                HasSubstr("<from-profile|it's|/my/env:/usr/bin:/bin|yes|" + project().string() + "|>"))
        << shell;
    EXPECT_EQ(ended.how, wire::ProcessEnd::exited(7)) << shell;
    client().send(FrameKind::end, 1);
  }
  request.project = "~/none";
  request.activate = "__failed=3";
  ended = {};
  begin();
  type("pwd; exit\n");
  EXPECT_THAT(finish().out, AllOf(HasSubstr("none is not on this server yet; this is your home folder"),
                                  HasSubstr("the prologue in configs.yaml failed (exit code 3)"),
                                  HasSubstr(home().string() + "\r\n")));
}

TEST_F(ForegroundRun, OtherShellsAreLoginShells) {
  use_terminal();
  request.shell.emplace();
  put_program(programs() / "myfish", "echo \"$0 $*\"; pwd");
  host.environment["SHELL"] = programs() / "myfish";
  begin();
  EXPECT_EQ(finish().out, (programs() / "myfish").string() + " -l\r\n" + project().string() + "\r\n");
}

TEST_F(ForegroundRun, AShellOnANodeIsStartedBySrun) {
  use_terminal();
  request.shell = wire::LoginShell{wire::ShellNode{{"--time=3", "-p*"}, (home() / "slurm").string()}};
  put_program(home() / "slurm/srun",
              "echo \"$*\"; while [ \"${1#/}\" = \"$1\" ]; do shift; done; exec \"$@\"");
  put_program(programs() / "mkdir", "");
  host.set_aside["PATH"] = programs().string();  // this machine may have Slurm
  host.environment["SHELL"] = "/bin/bash";
  put(home() / ".profile", "MINE=from-profile\n");
  begin();
  type("echo \"<$MINE|$PWD|${REMOTE_SHELL_RC-}>\"; exit 6\n");
  EXPECT_THAT(finish().out, AllOf(HasSubstr("--pty --time=3 -p* /bin/bash --norc"),
                                  HasSubstr("<from-profile|" + project().string() + "|>")));
  EXPECT_EQ(ended.how, wire::ProcessEnd::exited(6));
  client().send(FrameKind::end, 1);
  fs::remove(home() / "slurm/srun");
  ended = {};
  begin();
  EXPECT_THAT(finish().out, HasSubstr("there is no srun on this server"));
  EXPECT_EQ(ended.how, wire::ProcessEnd::exited(127));
}

class AttachRun : public ForegroundRun {
 protected:
  AttachRun() {
    request.has_input = true;
    request.debugger = wire::DebuggerAttachment{{"~/my proj", ".jobs"}, run_job_id, "1.77"};
  }
  fs::path job() const { return project() / ".jobs" / run_job_id; }
  void listen() {
    fs::create_directories(job() / "debug");
    ::chdir((job() / "debug").c_str());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string("1.77.sock").copy(address.sun_path, sizeof address.sun_path - 1);
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ::close(socket);
    ::chdir("/");
  }
};

TEST_F(AttachRun, ADebuggerThatDoesNotWaitIsGone) {
  begin();
  EXPECT_EQ(finish().how, wire::ProcessEnd::exited(13));
  client().send(FrameKind::end, 1);
  put(job() / "debug/1.77.sock", "no socket");
  begin();
  EXPECT_EQ(finish().how, wire::ProcessEnd::exited(13));
  EXPECT_EQ(ended.err, "");
}

TEST_F(AttachRun, RunsTheProgramOfTheJobsOwnVersion) {
  listen();
  begin();
  EXPECT_EQ(finish().how, wire::ProcessEnd::exited(1));
  EXPECT_THAT(ended.err, HasSubstr("the copy of the programs that started the job is missing"));
  client().send(FrameKind::end, 1);
  ASSERT_TRUE(create_spec(job(), {.program = "digest"}));
  put(project() / ".jobs/.bin/digest/python/attach.py",
      "import sys\nprint(sys.argv[1], input())\nsys.exit(11)\n");
  ended = {};
  begin();
  type("typed\n");
  EXPECT_EQ(finish().out, (job() / "debug/1.77.sock").string() + " typed\n") << ended.err;
  EXPECT_EQ(ended.how, wire::ProcessEnd::exited(11));
}

TEST_F(AttachRun, AnOldPythonIsPassedOver) {
  listen();
  ASSERT_TRUE(create_spec(job(), {.program = "digest"}));
  put(project() / ".jobs/.bin/digest/python/attach.py", "print('attached')\n");
  for (const char* name : {"python3", "python"}) {
    put_program(programs() / name, "echo 'Python 2.7.1'");
  }
  begin();
  EXPECT_EQ(finish().out, "attached\n") << ended.err;
}

}  // namespace
}  // namespace remote::agent
