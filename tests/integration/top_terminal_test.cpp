// `remote top` on its own terminal, with real servers: the terminal is restored however it ends.

#include <csignal>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/files.hpp"
#include "base/log.hpp"
#include "sandbox/processes.hpp"
#include "support/program_on_terminal.hpp"
#include "support/test_sandbox.hpp"
#include "support/waiting.hpp"

namespace remote {
namespace {

using ::testing::HasSubstr;

// The alternate screen is off, the cursor is visible, lines wrap.
constexpr const char* left = "\033[?7h\033[?25h\033[?1049l";

class TopTerminal : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    sandbox_ = std::make_unique<test::TestSandbox>(2);
    sandbox_->write_config();
  }
  static void TearDownTestSuite() { sandbox_.reset(); }

  static test::ProgramOnTerminal top(int rows = 24, int columns = 80) {
    return test::ProgramOnTerminal({"--project", sandbox_->project().string(), "top", "--interval", "1"},
                                   sandbox_->home(0), rows, columns);
  }
  static void expect_restored(test::ProgramOnTerminal& program) {
    EXPECT_THAT(program.screen(), HasSubstr(left));
    EXPECT_EQ(program.screen().rfind("\033[?1049h") < program.screen().rfind("\033[?1049l"), true);
    EXPECT_EQ(program.settings().c_lflag, program.first_settings().c_lflag);
    EXPECT_EQ(program.settings().c_iflag, program.first_settings().c_iflag);
    EXPECT_EQ(program.settings().c_oflag, program.first_settings().c_oflag);
  }

  // Starts a job on node-1 that has written "hello" and keeps running.
  static void start_job(test::TestSandbox& sandbox) {
    test::ProgramOnTerminal program({"--project", sandbox.project().string(), "job-run", "--server", "node-1",
                                     "--cmd", "echo hello; exec sleep 1000"},
                                    sandbox.home(0));
    ASSERT_EQ(program.end(), 0) << program.screen();
  }

  static std::unique_ptr<test::TestSandbox> sandbox_;
};
std::unique_ptr<test::TestSandbox> TopTerminal::sandbox_;

TEST_F(TopTerminal, IsLeftByCtrlC) {
  test::ProgramOnTerminal program = top();
  ASSERT_TRUE(program.shows("node-2")) << program.screen();
  ASSERT_TRUE(program.shows("q quit")) << program.screen();
  EXPECT_FALSE(program.echoes());
  program.type("\003");
  EXPECT_EQ(program.end(), 0);
  expect_restored(program);
}

TEST_F(TopTerminal, RestoresTheScreenWhenItIsTerminated) {
  for (const int number : {SIGTERM, SIGHUP}) {
    test::ProgramOnTerminal program = top();
    ASSERT_TRUE(program.shows("q quit")) << program.screen();
    ::kill(program.pid(), number);
    EXPECT_NE(program.end(), 0);
    expect_restored(program);
  }
}

TEST_F(TopTerminal, FollowsTheSizeOfTheWindow) {
  test::ProgramOnTerminal program = top(24, 40);
  ASSERT_TRUE(program.shows("arrows choose")) << program.screen();
  EXPECT_THAT(program.screen(), ::testing::Not(HasSubstr("free"))) << "it does not fit";
  program.resize(40, 200);
  EXPECT_TRUE(program.shows("GiB free")) << program.screen();
  EXPECT_TRUE(program.shows("q quit")) << program.screen();
  program.type("q");
  EXPECT_EQ(program.end(), 0);
  expect_restored(program);
}

// A server that accepts the connection and then stays silent is marked; the others are still shown.
TEST_F(TopTerminal, IsNotHeldUpByASilentServer) {
  UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(silent.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(silent.get(), 8), 0);
  ASSERT_EQ(::getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  test::TestSandbox sandbox(1);
  sandbox.write_config();
  std::ofstream(sandbox.project() / ".remote/configs.yaml", std::ios::app)
      << "  mute: {hostname: 127.0.0.1, username: ann, port: " << ntohs(address.sin_port) << "}\n";
  test::ProgramOnTerminal program({"--project", sandbox.project().string(), "top", "--interval", "1"},
                                  sandbox.home(0));
  ASSERT_TRUE(program.shows("GiB free")) << program.screen();
  EXPECT_TRUE(program.shows("has not answered yet")) << program.screen();
  program.type("q");
  EXPECT_EQ(program.end(), 0);
  expect_restored(program);
}

TEST_F(TopTerminal, ShowsOutputAndStacksAndEndsAJob) {
  test::TestSandbox sandbox(1);
  sandbox.write_config();
  start_job(sandbox);
  test::ProgramOnTerminal program({"--project", sandbox.project().string(), "top", "--interval", "1"},
                                  sandbox.home(0));
  ASSERT_TRUE(program.shows("echo hello")) << program.screen();
  program.type("jf");
  EXPECT_TRUE(program.shows("hello")) << program.screen();
  EXPECT_TRUE(program.shows("q back")) << program.screen();
  program.type("qs");
  EXPECT_TRUE(program.shows("Stacks of job 1")) << program.screen();
  program.type("qxy");
  EXPECT_TRUE(program.shows("it is ended")) << program.screen();
  program.type("q");
  EXPECT_EQ(program.end(), 0);
  expect_restored(program);
}

// The server answered, and then goes silent: keys are still read.
TEST_F(TopTerminal, ReadsKeysWhileAServerIsSilent) {
  test::TestSandbox sandbox(1);
  sandbox.write_config();
  start_job(sandbox);
  struct Silence {
    explicit Silence(pid_t sshd) {
      for (const sandbox::Process& one : sandbox::with_descendants(sandbox::list_processes(), {sshd})) {
        ::kill(one.pid, SIGSTOP);
        stopped.push_back(one.pid);
      }
    }
    ~Silence() {
      for (const pid_t pid : stopped) {
        ::kill(pid, SIGCONT);
      }
    }
    std::vector<pid_t> stopped;
  };
  for (const auto& [asks, shows] : {std::pair("f", "q back"), std::pair("s", "asking for stacks")}) {
    test::ProgramOnTerminal program({"--project", sandbox.project().string(), "top", "--interval", "1"},
                                    sandbox.home(0));
    ASSERT_TRUE(program.shows("echo hello")) << program.screen();
    program.type("j");
    const Silence silence(sandbox.servers().at(0).pid);
    program.type(asks);
    ASSERT_TRUE(program.shows(shows)) << program.screen();
    const Stopwatch watch;
    program.type("qq");
    EXPECT_EQ(program.end(), 0);
    EXPECT_LT(watch.seconds(), 20) << asks;  // otherwise 25 s: silence counts as a lost connection
    expect_restored(program);
  }
}

}  // namespace
}  // namespace remote
