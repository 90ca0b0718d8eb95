#include "agent/launch/watchdog.hpp"

#include <array>
#include <csignal>
#include <cstdio>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/files.hpp"

namespace remote::agent {
namespace {

// A process with a watchdog that writes one byte to the pipe when it takes over.
class WatchdogTest : public ::testing::Test {
 protected:
  WatchdogTest() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(::pipe(ends.data()), 0);
    read_ = Descriptor(ends[0]);
    write_ = Descriptor(ends[1]);
  }

  pid_t start(bool dismisses) {
    std::fflush(stdout);  // flush, because the forked processes use another file
    const pid_t pid = ::fork();
    if (pid == 0) {
      // The watchdog closes all other descriptors, so the pipe is its stdout.
      ::dup2(write_.get(), STDOUT_FILENO);
      Watchdog watchdog([] { [[maybe_unused]] const ssize_t count = ::write(STDOUT_FILENO, "!", 1); });
      watchdog.keep();
      watchdog.keep();  // only one watchdog is started
      if (dismisses) {
        watchdog.dismiss();
        ::_exit(0);
      }
      [[maybe_unused]] const ssize_t count = ::write(STDOUT_FILENO, "r", 1);
      ::pause();
    }
    write_.reset();
    return pid;
  }
  // Reads until all writers have exited.
  std::string read_all() {
    std::string text;
    char byte = 0;
    while (::read(read_.get(), &byte, 1) == 1) {
      text += byte;
    }
    return text;
  }

  Descriptor read_;
  Descriptor write_;
};

TEST_F(WatchdogTest, TakesOverFromAKilledProcess) {
  const pid_t pid = start(false);
  char byte = 0;
  ASSERT_EQ(::read(read_.get(), &byte, 1), 1);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(read_all(), "!");
}

TEST_F(WatchdogTest, ExitsWhenItIsDismissed) {
  ::waitpid(start(true), nullptr, 0);
  EXPECT_EQ(read_all(), "");
}

}  // namespace
}  // namespace remote::agent
