#include <array>
#include <atomic>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <remote/cancel.hpp>
#include <remote/error.hpp>
#include <unistd.h>

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
    throw Interrupted();
  }
}

}  // namespace remote
