#pragma once

#include <atomic>
#include <functional>
#include <utility>

#include <remote/cancel.hpp>
#include <remote/error.hpp>
#include <unistd.h>

#include "base/threads.hpp"

namespace remote::cli {

// What is asked of servers, on a thread of its own: the keys are read meanwhile, whatever a server does.
// The destructor gives it up.
class Asking {
 public:
  // Shows an answer, on the thread that draws.
  using Show = std::function<void()>;
  // `wake` is readable for the thread that draws when the answer is there.
  Asking(int wake, std::function<Show(const Cancel&)> ask)
      : thread_([this, wake, ask = std::move(ask)] {
          try {
            show_ = ask(cancel_);
          } catch (const Interrupted&) {
            show_ = [] {};
          }
          done_ = true;
          static_cast<void>(!::write(wake, "a", 1));  // where the pipe is full, it is known already
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
