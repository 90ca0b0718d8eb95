#pragma once

#include <atomic>
#include <functional>
#include <utility>

#include <remote/cancel.hpp>
#include <remote/error.hpp>
#include <unistd.h>

#include "base/threads.hpp"

namespace remote::cli {

// A request to servers on a separate thread, so that keys are handled even if a server does not answer. The
// destructor cancels it.
class Asking {
 public:
  // Shows the answer; called on the thread that draws.
  using Show = std::function<void()>;
  // Writes to `wake` when the answer is ready, to wake the thread that draws.
  Asking(int wake, std::function<Show(const Cancel&)> ask)
      : thread_([this, wake, ask = std::move(ask)] {
          try {
            show_ = ask(cancel_);
          } catch (const Interrupted&) {
            show_ = [] {};
          }
          done_ = true;
          static_cast<void>(!::write(wake, "a", 1));  // if the pipe is full, a wakeup is already pending
        }) {}
  ~Asking() { cancel_.cancel(); }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

  bool done() const { return done_; }
  // Waits for the answer.
  const Show& answer() {
    if (thread_.joinable()) {
      thread_.join();
    }
    return show_;
  }

 private:
  Cancel cancel_;
  Show show_;
  std::atomic<bool> done_ = false;
  JoiningThread thread_;
};

}  // namespace remote::cli
