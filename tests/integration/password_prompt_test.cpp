// A password's prompt on a real terminal: however it is left, at once, and the terminal echoes again.

#include <csignal>
#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include "base/files.hpp"
#include "support/password_server.hpp"
#include "support/paths.hpp"
#include "support/waiting.hpp"

namespace remote {
namespace {

using test::PasswordServer;
using testing::HasSubstr;

// `remote run --cmd true` on a terminal of its own.
class OnATerminal {
 public:
  explicit OnATerminal(const std::filesystem::path& project) {
    int master = -1;
    int slave = -1;
    EXPECT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
    master_.reset(master);
    slave_.reset(slave);  // kept open: the terminal's settings outlive the program
    pid_ = ::fork();
    if (pid_ == 0) {
      const rlimit none{0, 0};
      ::setrlimit(RLIMIT_CORE, &none);
      ::close(master);
      ::login_tty(slave);
      ::setenv("HOME", project.c_str(), 1);
      ::unsetenv("SSH_AUTH_SOCK");
      ::execl(test::remote_binary, test::remote_binary, "--project", project.c_str(), "run", "--cmd", "true",
              static_cast<char*>(nullptr));
      std::_Exit(127);
    }
  }
  ~OnATerminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  OnATerminal(const OnATerminal&) = delete;
  OnATerminal& operator=(const OnATerminal&) = delete;

  pid_t pid() const { return pid_; }
  void type(const std::string& text) const { write_all(master_.get(), text); }
  bool echoes() const {
    termios now{};
    EXPECT_EQ(::tcgetattr(slave_.get(), &now), 0);
    return (now.c_lflag & ECHO) != 0;
  }
  const std::string& screen() {
    pollfd slot{master_.get(), POLLIN, 0};
    char buffer[4096];
    while (::poll(&slot, 1, 0) == 1 && (slot.revents & POLLIN) != 0) {
      const ssize_t count = ::read(master_.get(), buffer, sizeof buffer);
      if (count <= 0) {
        break;
      }
      screen_.append(buffer, static_cast<std::size_t>(count));
    }
    return screen_;
  }
  // As a shell has it; -1 when it does not end.
  int end() {
    int status = 0;
    const bool ended = test::eventually(
        [&] {
          screen();
          return ::waitpid(pid_, &status, WNOHANG) == pid_;
        },
        10);
    if (!ended) {
      return -1;
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  UniqueFd master_;
  UniqueFd slave_;
  pid_t pid_ = -1;
  std::string screen_;
};

class PasswordPrompt : public testing::Test {
 protected:
  PasswordPrompt() : folder_("remote-prompt-") {
    make_folders(folder_.path() / ".remote");
    write_file_atomic(folder_.path() / ".remote/configs.yaml",
                      fmt::format("python: {{manager: system}}\nservers:\n"
                                  "  a: {{hostname: 127.0.0.1, port: {}, username: ann}}\n"
                                  "  b: {{hostname: 127.0.0.1, port: {}, username: bob}}\n",
                                  first_.port(), second_.port()));
  }
  // Until one server's password is asked for; the other's question waits behind it.
  static void until_asked(OnATerminal& terminal) {
    ASSERT_TRUE(test::eventually([&] {
      return terminal.screen().find("Password for") != std::string::npos && !terminal.echoes();
    })) << terminal.screen();
  }

  PasswordServer first_{{.password = "pw", .prompts = {}, .echo = {}, .answers = {}}};
  PasswordServer second_{{.password = "pw", .prompts = {}, .echo = {}, .answers = {}}};
  TempFolder folder_;
};

TEST_F(PasswordPrompt, CtrlCEndsItAtOnceAndTheTerminalEchoes) {
  OnATerminal terminal(folder_.path());
  until_asked(terminal);
  terminal.type("\x03");
  EXPECT_EQ(terminal.end(), 130) << terminal.screen();
  EXPECT_TRUE(terminal.echoes());
}

TEST_F(PasswordPrompt, HoweverTheProgramEndsTheTerminalEchoes) {
  for (const int signal : {SIGTERM, SIGHUP, SIGQUIT, SIGSEGV, SIGABRT}) {
    OnATerminal terminal(folder_.path());
    until_asked(terminal);
    ::kill(terminal.pid(), signal);
    EXPECT_GT(terminal.end(), 0) << signal << terminal.screen();
    EXPECT_TRUE(terminal.echoes()) << signal;
  }
}

TEST_F(PasswordPrompt, TwoServersAreAskedForOneAfterTheOther) {
  OnATerminal terminal(folder_.path());
  until_asked(terminal);
  terminal.type("pw\n");
  ASSERT_TRUE(test::eventually([&] {
    const std::string& screen = terminal.screen();
    const auto first = screen.find("Password for");
    return screen.find("Password for", first + 1) != std::string::npos && !terminal.echoes();
  })) << terminal.screen();
  terminal.type("pw\n");
  EXPECT_NE(terminal.end(), -1) << terminal.screen();
  EXPECT_EQ(first_.attempts() + second_.attempts(), 2);
  EXPECT_TRUE(terminal.echoes());
  EXPECT_THAT(terminal.screen(), testing::Not(HasSubstr("pw\r\n")));
}

}  // namespace
}  // namespace remote
