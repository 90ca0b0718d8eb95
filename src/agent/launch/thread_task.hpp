#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include <sys/eventfd.h>

#include "agent/host/background.hpp"

namespace remote::agent {

// Runs work in a thread, because files may be on slow storage.
class ThreadTask {
 public:
  // `wake` is an eventfd that becomes readable when the work has ended.
  explicit ThreadTask(int wake) : wake_(wake) {}

  bool is_running() const { return work_ != nullptr; }
  // Returns false if no thread can be started.
  bool start(std::function<void()> work) {
    has_ended_ = false;
    work_ = std::make_unique<BackgroundWork>([this, work = std::move(work)] {
      try {
        work();
      } catch (const std::exception&) {  // the result stays empty
      }
      has_ended_ = true;
      ::eventfd_write(wake_, 1);
    });
    if (!work_->has_thread()) {
      work_.reset();
    }
    return is_running();
  }
  // Returns true once after the work has ended.
  bool finish() {
    if (!work_ || !has_ended_) {
      return false;
    }
    work_.reset();
    return true;
  }

 private:
  int wake_;
  std::atomic<bool> has_ended_ = false;
  std::unique_ptr<BackgroundWork> work_;
};

}  // namespace remote::agent
