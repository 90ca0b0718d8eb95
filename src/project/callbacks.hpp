#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>

#include "base/files.hpp"

namespace remote::project {

// The callbacks of one call. Any thread posts them; the thread that made the call runs them, one at a time,
// in the order in which they were posted.
class Callbacks {
 public:
  Callbacks();

  // Thread-safe. `bytes`: size of the data that the callback holds; blocks while too much data is queued.
  void post(std::function<void()> callback, std::size_t bytes = 0);

  // The members below are for the thread that created the object. fd() is readable if there are callbacks to
  // run.
  int fd() const { return signs_.read.get(); }
  // Runs some of the queued callbacks; returns whether more may be queued. An exception in a callback is
  // kept: it ends the call, and no more callbacks are run.
  bool run();
  // Runs one immediately; exceptions as in run().
  void run_now(const std::function<void()>& callback);
  bool failed() const { return static_cast<bool>(failure_); }
  // Throws the exception of a callback, if there was one.
  void rethrow() const;

  // Makes fd() readable. Thread-safe.
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
  std::size_t bytes_ = 0;  // of the queued callbacks
  std::exception_ptr failure_;
};

}  // namespace remote::project
