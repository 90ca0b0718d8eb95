#include "base/cancel.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.hpp"

namespace remote {

struct Cancel::State {
  State() {
    if (::pipe(pipe.data()) != 0) {
      throw std::system_error(errno, std::generic_category(), "pipe");
    }
    for (const int fd : pipe) {
      ::fcntl(fd, F_SETFD, FD_CLOEXEC);
      ::fcntl(fd, F_SETFL, O_NONBLOCK);
    }
  }
  ~State() {
    for (const int fd : pipe) {
      ::close(fd);
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::atomic<bool> cancelled{false};
  std::array<int, 2> pipe{-1, -1};
};

Cancel::Cancel() : state_(std::make_shared<State>()) {}

void Cancel::cancel() noexcept {
  if (!state_->cancelled.exchange(true)) {
    const char byte = 1;
    // A full pipe is readable already, so a failed write loses nothing.
    [[maybe_unused]] const auto written = ::write(state_->pipe[1], &byte, 1);
  }
}

bool Cancel::cancelled() const noexcept {
  return state_->cancelled.load();
}

int Cancel::fd() const noexcept {
  return state_->pipe[0];
}

void Cancel::check() const {
  if (cancelled()) {
    throw Error::interrupted();
  }
}

namespace {

// The handler needs something that outlives main's locals; set once, before the handler is installed.
Cancel* signal_target() {
  static Cancel target;
  return &target;
}

extern "C" void on_signal(int number) {
  const int saved_errno = errno;
  Cancel* target = signal_target();
  if (target->cancelled() && number == SIGINT) {
    ::_exit(130);
  }
  target->cancel();
  errno = saved_errno;
}

}  // namespace

Cancel cancel_on_signals() {
  Cancel token = *signal_target();
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigemptyset(&ignore.sa_mask);
  ::sigaction(SIGPIPE, &ignore, nullptr);  // a closed pipe is an error of write(2), not our end
  return token;
}

}  // namespace remote
