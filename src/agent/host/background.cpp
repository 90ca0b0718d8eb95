#include "agent/host/background.hpp"

#include <system_error>

namespace remote::agent {

BackgroundWork::BackgroundWork(std::function<void()> work) : work_(std::move(work)) {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
  }
}

BackgroundWork::~BackgroundWork() {
  if (thread_.joinable()) {
    thread_.join();
  }
}

void BackgroundWork::wait() {
  if (thread_.joinable()) {
    thread_.join();
  } else if (work_) {
    run();
  }
  if (error_) {
    std::rethrow_exception(error_);
  }
}

void BackgroundWork::run() {
  try {
    work_();
  } catch (...) {
    error_ = std::current_exception();
  }
  work_ = nullptr;
}

}  // namespace remote::agent
