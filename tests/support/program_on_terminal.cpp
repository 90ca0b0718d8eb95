#include "support/program_on_terminal.hpp"

#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include "support/paths.hpp"
#include "support/waiting.hpp"

namespace remote::test {

ProgramOnTerminal::ProgramOnTerminal(const std::vector<std::string>& words, const std::filesystem::path& home,
                                     int rows, int columns) {
  std::vector<std::string> all = words;
  all.insert(all.begin(), remote_binary);
  std::vector<char*> argv;
  for (std::string& word : all) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  const winsize size{static_cast<unsigned short>(rows), static_cast<unsigned short>(columns), 0, 0};
  int master = -1;
  int slave = -1;
  EXPECT_EQ(::openpty(&master, &slave, nullptr, nullptr, &size), 0);
  master_.reset(master);
  slave_.reset(slave);
  first_ = settings();
  pid_ = ::fork();
  if (pid_ == 0) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::close(master);
    ::login_tty(slave);
    ::setenv("HOME", home.c_str(), 1);
    ::setenv("TERM", "xterm", 1);
    ::unsetenv("SSH_AUTH_SOCK");
    ::unsetenv("XDG_RUNTIME_DIR");
    ::execv(remote_binary, argv.data());
    std::_Exit(127);
  }
}

ProgramOnTerminal::~ProgramOnTerminal() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void ProgramOnTerminal::resize(int rows, int columns) const {
  const winsize size{static_cast<unsigned short>(rows), static_cast<unsigned short>(columns), 0, 0};
  EXPECT_EQ(::ioctl(master_.get(), TIOCSWINSZ, &size), 0);
}

termios ProgramOnTerminal::settings() const {
  termios now{};
  EXPECT_EQ(::tcgetattr(slave_.get(), &now), 0);
  return now;
}

const std::string& ProgramOnTerminal::screen() {
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

bool ProgramOnTerminal::shows(const std::string& text) {
  return eventually([&] { return screen().find(text) != std::string::npos; });
}

int ProgramOnTerminal::end() {
  int status = 0;
  const bool ended = eventually([&] {
    screen();
    return ::waitpid(pid_, &status, WNOHANG) == pid_;
  });
  if (!ended) {
    return -1;
  }
  pid_ = -1;
  screen();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace remote::test
