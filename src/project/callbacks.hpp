#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>

#include "base/files.hpp"

namespace remote::project {

// The callbacks of one call: any thread posts them, and the thread that made the call runs them, one at a
// time, in the order in which they came.
class Callbacks {
 public:
  Callbacks();

  // Any thread. `bytes`: how much data goes along; it waits while much of it is waiting to be handed over.
  void post(std::function<void()> callback, std::size_t bytes = 0);

  // All that follows is for the thread that made the object.
  // Can be read when there is something to run.
  int fd() const { return signs_.read.get(); }
  // Runs some of what has come; whether more may be waiting. What a callback throws is kept: it ends the
  // call, and no other callback is run.
  bool run();
  // Runs one at once, likewise.
  void run_now(const std::function<void()>& callback);
  bool failed() const { return static_cast<bool>(failure_); }
  // Throws what a callback threw, if one did.
  void rethrow() const;

  // Any thread: fd() can be read.
  void wake();

 private:
  struct Entry {
    std::function<void()> callback;
    std::size_t bytes;
  };
  Pipe signs_;
  mutable std::mutex mutex_;
  std::condition_variable room_;
  std::deque<Entry> waiting_;
  std::size_t bytes_ = 0;  // of those that wait
  std::exception_ptr failure_;
};

}  // namespace remote::project
