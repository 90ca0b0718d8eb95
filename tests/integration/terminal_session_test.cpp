// Commands and shells on a terminal: `remote run --tty` and `remote shell`, with the built program on its own
// terminal and a real sshd.

#include <csignal>
#include <cstring>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "support/paths.hpp"
#include "support/processes.hpp"
#include "support/program_on_terminal.hpp"
#include "support/test_sandbox.hpp"
#include "support/waiting.hpp"

namespace remote {
namespace {

using test::ProgramOnTerminal;
using testing::HasSubstr;
using testing::Not;

class TerminalSession : public testing::Test {
 protected:
  TerminalSession() { sandbox_.write_config(); }
  // Sets the user's login shell and sends the project.
  void serve(const std::string& shell = "/bin/sh") {
    sandbox::SandboxOptions options;
    options.shell = shell;
    options.nodes = 1;
    sandbox_.sandbox().down();
    sandbox_.sandbox().up(options);
    make_folders(there());
  }
  std::filesystem::path there() const { return sandbox_.home(0) / "my_project"; }
  std::vector<std::string> words(const std::vector<std::string>& more) const {
    std::vector<std::string> all{"--project", sandbox_.project().string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  ProgramOnTerminal start(const std::vector<std::string>& more) {
    return {words(more), sandbox_.project(), 33, 101};
  }
  static bool equal(const termios& one, const termios& other) {
    return one.c_iflag == other.c_iflag && one.c_oflag == other.c_oflag && one.c_cflag == other.c_cflag &&
           one.c_lflag == other.c_lflag && std::memcmp(one.c_cc, other.c_cc, sizeof one.c_cc) == 0;
  }
  // It must exit with this code and restore the terminal.
  static void ends(ProgramOnTerminal& program, int code) {
    EXPECT_EQ(program.end(), code) << program.screen();
    EXPECT_TRUE(equal(program.settings(), program.first_settings())) << program.screen();
  }

  test::TestSandbox sandbox_{1};
};

TEST_F(TerminalSession, ACommandGetsTheWindowItsChangesAndGivesItsOwnCode) {
  serve();
  ProgramOnTerminal program = start(
      {"run", "--cmd",
       "test -t 0 && test -t 1 && test -t 2 && stty size && echo $TERM; trap 'stty size; exit 5' WINCH; "
       "echo rea''dy; while :; do sleep 0.1; done"});
  ASSERT_TRUE(program.shows("ready")) << program.screen();
  EXPECT_THAT(program.screen(), HasSubstr("33 101\r\nxterm\r\n"));
  program.resize(40, 120);
  EXPECT_TRUE(program.shows("40 120")) << program.screen();
  ends(program, 5);
}

TEST_F(TerminalSession, WithoutATerminalItIsAsBefore) {
  serve();
  ProgramOnTerminal program = start({"run", "--no-tty", "--cmd", "test -t 1 || echo pi''pe; exit 3"});
  ends(program, 3);
  EXPECT_THAT(program.screen(), HasSubstr("pipe"));
  // A terminal can also be requested if stdin is not one. The end of stdin is then sent as Ctrl-D.
  SubprocessSpec spec;
  spec.argv = words({"run", "--tty", "--cmd", "test -t 0 && cat; exit 4"});
  spec.argv.insert(spec.argv.begin(), test::remote_binary);
  const ExecResult result = run_subprocess(spec, "typed\nmore");
  EXPECT_EQ(result.status, ExitStatus::exited(4)) << result.err;
  EXPECT_THAT(result.out, HasSubstr("typed\r\n"));
}

TEST_F(TerminalSession, CtrlCInterruptsWhatRunsInTheShellAndNotTheShell) {
  serve();
  ProgramOnTerminal program = start({"shell", "node-1"});
  // The program itself prints that it runs, because by then it owns the terminal. After an echo by the shell,
  // sleep might not.
  program.type("sh -c \"echo be''gun; exec sleep 1000\"; echo never''there\n");
  ASSERT_TRUE(program.shows("begun")) << program.screen();
  EXPECT_FALSE(program.echoes());
  program.type("\x03");
  program.type("echo stil''l here\n");
  ASSERT_TRUE(program.shows("still here")) << program.screen();
  EXPECT_THAT(program.screen(), Not(HasSubstr("neverthere")));
  program.type("exit 7\n");
  ends(program, 7);
}

TEST_F(TerminalSession, TheShellHasTheProjectsFolderAndEnvironmentBehindItsStartFiles) {
  for (const std::string shell : {"/bin/bash", "/bin/sh"}) {
    serve(shell);
    std::ofstream(sandbox_.home(0) / ".profile")
        << "PATH=/usr/bin:/bin; export PATH; export MINE=from-profile; cd /\n";
    ProgramOnTerminal program =
        start({"shell", "node-1", "-e", "PATH=/my/env:/usr/bin:/bin", "-e", "A=it's"});
    program.type("echo \"<$MINE|$A|$PATH|$PYTHONPATH|$PWD>\"; exit\n");
    ends(program, 0);
    EXPECT_THAT(program.screen(), HasSubstr(fmt::format("<from-profile|it's|/my/env:/usr/bin:/bin|")))
        << shell;
    EXPECT_THAT(program.screen(), HasSubstr("/my_project/src|")) << shell;
    EXPECT_THAT(program.screen(), HasSubstr("/my_project>")) << shell;
    EXPECT_THAT(program.screen(), Not(HasSubstr("/src:"))) << shell;
  }
}

TEST_F(TerminalSession, ADebuggerIsUsed) {
  serve();
  std::ofstream(there() / "prog.py") << "answer = 6 * 7\nprint(answer)\n";
  ProgramOnTerminal program = start({"run", "--cmd", "python3 -m pdb prog.py"});
  ASSERT_TRUE(program.shows("(Pdb)")) << program.screen();
  program.type("n\np answer + 1000\n");
  ASSERT_TRUE(program.shows("1042")) << program.screen();
  program.type("q\n");
  ends(program, 0);
}

TEST_F(TerminalSession, HoweverItEndsTheTerminalIsAsBeforeAndNothingIsLeftThere) {
  serve();
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGSEGV, SIGABRT}) {
    ProgramOnTerminal program = start({"shell", "node-1"});
    program.type("echo pid=$$=; sleep 1000\n");
    std::string pid;
    ASSERT_TRUE(test::eventually([&] {
      const std::string& screen = program.screen();
      const auto at = screen.rfind("pid=");
      pid = at == std::string::npos ? "" : screen.substr(at + 4, screen.find('=', at + 4) - at - 4);
      return !pid.empty() && pid.find_first_not_of("0123456789") == std::string::npos;
    })) << program.screen();
    ASSERT_FALSE(program.echoes());
    ::kill(program.pid(), signal);
    EXPECT_GT(program.end(), 0) << signal << program.screen();
    EXPECT_TRUE(equal(program.settings(), program.first_settings())) << signal;
    EXPECT_TRUE(test::eventually([&] { return ::kill(std::stoi(pid), 0) != 0; })) << signal;
  }
}

TEST_F(TerminalSession, ALinkThatIsLostIsToldOnAWorkingTerminal) {
  serve();
  ProgramOnTerminal program = start({"shell", "node-1"});
  program.type("echo be''gun\n");
  ASSERT_TRUE(program.shows("begun")) << program.screen();
  sandbox_.sandbox().down();
  ends(program, 1);
  EXPECT_THAT(program.screen(), HasSubstr("node-1: connection lost"));
  EXPECT_THAT(program.screen(), HasSubstr("\033[?25h"));
}

// The terminal is not allocated by sshd.
TEST_F(TerminalSession, ATerminalIsPossibleWherePermitTtyIsNo) {
  sandbox::SandboxOptions options;
  options.nodes = 1;
  options.sshd_config = {"PermitTTY no"};
  sandbox_.sandbox().down();
  sandbox_.sandbox().up(options);
  make_folders(there());
  ProgramOnTerminal program = start({"run", "--cmd", "test -t 0 && echo termi''nal"});
  ends(program, 0);
  EXPECT_THAT(program.screen(), HasSubstr("terminal"));
}

TEST_F(TerminalSession, ALongScriptArrivesWhole) {
  serve();
  const std::string value(100000, 'x');
  ProgramOnTerminal program = start({"run", "-e", "LONG=" + value, "--cmd", "echo size=${#LONG}=; exit 6"});
  ends(program, 6);
  EXPECT_THAT(program.screen(), HasSubstr("size=100000="));
}

TEST_F(TerminalSession, WhatDoesNotGoTogetherIsRefused) {
  const auto refused = [&](const std::vector<std::string>& more) {
    SubprocessSpec spec;
    spec.argv = words(more);
    spec.argv.insert(spec.argv.begin(), test::remote_binary);
    const ExecResult result = run_subprocess(spec);
    EXPECT_EQ(result.status, ExitStatus::exited(2)) << result.err;
    return result.err;
  };
  EXPECT_THAT(refused({"run", "--tty", "--json", "--cmd", "true"}), HasSubstr("does not work with --json"));
  EXPECT_THAT(refused({"run", "--tty", "--no-tty", "--cmd", "true"}), HasSubstr("--no-tty"));
  EXPECT_THAT(refused({"shell", "node-1"}), HasSubstr("stdin and stdout must be a terminal"));
}

}  // namespace
}  // namespace remote
