#include "project/callbacks.hpp"

#include <array>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace remote::project {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 20U;

}  // namespace

Callbacks::Callbacks() : signs_(make_pipe()) {
  for (const UniqueFd* end : {&signs_.read, &signs_.write}) {
    ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
  }
}

void Callbacks::post(std::function<void()> callback, std::size_t bytes) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return bytes == 0 || bytes_ == 0 || bytes_ + bytes <= most_bytes || failure_; });
  if (failure_) {
    return;  // the call is ending
  }
  waiting_.push_back({std::move(callback), bytes});
  bytes_ += bytes;
  if (waiting_.size() == 1) {
    wake();
  }
}

void Callbacks::wake() {
  static_cast<void>(!::write(signs_.write.get(), "c", 1));  // full: a wakeup is pending
}

bool Callbacks::run() {
  std::array<char, 64> signs{};
  while (::read(signs_.read.get(), signs.data(), signs.size()) > 0) {
  }
  // Limited, so that the caller can check its Cancel even if more callbacks keep arriving.
  for (int left = 64; left > 0; --left) {
    Entry entry;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) {
        return false;
      }
      entry = std::move(waiting_.front());
      waiting_.pop_front();
      bytes_ -= entry.bytes;
    }
    room_.notify_all();
    run_now(entry.callback);
  }
  wake();
  return true;
}

void Callbacks::run_now(const std::function<void()>& callback) {
  if (failure_) {
    return;
  }
  try {
    callback();
  } catch (...) {
    std::deque<Entry> dropped;  // destroyed after unlocking, which wakes threads that wait for one
    {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      dropped.swap(waiting_);
      bytes_ = 0;
    }
    room_.notify_all();
  }
}

void Callbacks::rethrow() const {
  if (failure_) {
    std::rethrow_exception(failure_);
  }
}

}  // namespace remote::project
