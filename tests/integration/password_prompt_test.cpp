// A password prompt on a real terminal: it can be left immediately in every way, and the terminal echoes
// again.

#include <csignal>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "support/password_server.hpp"
#include "support/program_on_terminal.hpp"
#include "support/waiting.hpp"

namespace remote {
namespace {

using test::PasswordServer;
using testing::HasSubstr;

struct OnATerminal : test::ProgramOnTerminal {
  explicit OnATerminal(const std::filesystem::path& project)
      : ProgramOnTerminal({"--project", project.string(), "run", "--cmd", "true"}, project) {}
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
  // Waits until one server's password is requested; the other server's question waits for it.
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
