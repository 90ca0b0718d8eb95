#include <atomic>

#include <fcntl.h>
#include <remote/cancel.hpp>
#include <unistd.h>

#include "base/files.hpp"

namespace remote {

struct Cancel::State {
  State() {
    ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
    ::fcntl(pipe.write.get(), F_SETFL, O_NONBLOCK);
  }

  std::atomic<bool> cancelled{false};
  Pipe pipe = make_pipe();
};

Cancel::Cancel() : state_(std::make_shared<State>()) {}

void Cancel::cancel() noexcept {
  if (!state_->cancelled.exchange(true)) {
    const char byte = 1;
    // If the pipe is full, it is already readable, so a failed write does no harm.
    [[maybe_unused]] const auto written = ::write(state_->pipe.write.get(), &byte, 1);
  }
}

bool Cancel::cancelled() const noexcept {
  return state_->cancelled.load();
}

int Cancel::fd() const noexcept {
  return state_->pipe.read.get();
}

void Cancel::check() const {
  if (cancelled()) {
    throw Interrupted();
  }
}

}  // namespace remote
