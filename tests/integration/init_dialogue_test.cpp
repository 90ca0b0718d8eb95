#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.hpp"
#include "config/config.hpp"
#include "support/paths.hpp"

namespace remote::config {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Runs `remote init` on its own terminal with these answers; returns the screen and the exit code.
std::pair<std::string, int> init_on_terminal(const fs::path& folder, const std::string& answers) {
  int master = -1;
  const pid_t pid = ::forkpty(&master, nullptr, nullptr, nullptr);
  if (pid == 0) {
    if (::chdir(folder.c_str()) == 0) {
      ::execl(test::remote_binary, test::remote_binary, "init", static_cast<char*>(nullptr));
    }
    std::_Exit(127);
  }
  const UniqueFd terminal(master);
  write_all(terminal.get(), answers);
  std::string screen;
  pollfd ready{terminal.get(), POLLIN, 0};
  char buffer[4096];
  while (::poll(&ready, 1, 20'000) == 1) {
    const ssize_t count = ::read(terminal.get(), buffer, sizeof buffer);
    if (count <= 0) {
      break;  // EIO: the program has exited
    }
    screen.append(buffer, static_cast<std::size_t>(count));
  }
  ::kill(pid, SIGKILL);  // no effect if it has already exited
  int status = 0;
  ::waitpid(pid, &status, 0);
  return {screen, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
}

TEST(InitDialogue, AsksOnATerminal) {
  const TempFolder folder("remote init ");
  const auto [screen, code] =
      init_on_terminal(folder.path(),
                       "a/b\nmy project\n../x\nfirst\nu@h:0\nu@h:22\nfirst\nsecond\n[::1]\n\n"
                       ".remote/key\nvenv\n");
  EXPECT_EQ(code, 0) << screen;
  const Config config = load(folder.path());
  EXPECT_EQ(config.name, "my project");
  ASSERT_EQ(config.servers.size(), 2U) << screen;
  EXPECT_EQ(config.servers[0].username, "u");
  EXPECT_EQ(config.servers[1].hostname, "::1");
  EXPECT_EQ(config.servers[1].private_key, folder.path() / ".remote/key");
  EXPECT_EQ(config.python.manager, PythonManager::venv);
  EXPECT_THAT(screen, HasSubstr("this cannot be the name"));
  EXPECT_THAT(screen, HasSubstr("the port must be a number"));
  EXPECT_THAT(screen, HasSubstr("of this name already"));
}

TEST(InitDialogue, AnInterruptedDialogueWritesNothing) {
  const TempFolder folder;
  EXPECT_EQ(init_on_terminal(folder.path(), "name\nfirst\n\x04").second, 1);
  EXPECT_FALSE(fs::exists(folder.path() / ".remote"));
}

}  // namespace
}  // namespace remote::config
