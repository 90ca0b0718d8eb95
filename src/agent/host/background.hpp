#pragma once

#include <exception>
#include <functional>
#include <thread>
#include <utility>

// Runs work in a separate thread. std::async() would make the compressed agent 8 KB larger.

namespace remote::agent {

// Runs `work` in a thread, or in wait() if the user's process limit is reached.
class BackgroundWork {
 public:
  explicit BackgroundWork(std::function<void()> work);
  BackgroundWork(const BackgroundWork&) = delete;
  BackgroundWork& operator=(const BackgroundWork&) = delete;
  ~BackgroundWork();  // waits for the thread

  // False at the process limit: `work` runs only in wait().
  bool has_thread() const { return thread_.joinable(); }
  // Waits for `work` and rethrows its exceptions. Can be called again.
  void wait();

 private:
  void run();

  std::function<void()> work_;
  std::exception_ptr error_;
  std::thread thread_;
};

template <typename Value>
class Background {
 public:
  explicit Background(std::function<Value()> work)
      : work_([this, work = std::move(work)] { value_ = work(); }) {}

  // Returns the result of `work`, or rethrows its exception. Call it only once.
  Value get() {
    work_.wait();
    return std::move(value_);
  }

 private:
  Value value_{};
  BackgroundWork work_;
};

}  // namespace remote::agent
