#include "agent/serve/loop.hpp"

#include <algorithm>
#include <cstdint>
#include <system_error>

#include <sys/eventfd.h>
#include <unistd.h>

namespace remote::agent {

Loop::Loop() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Loop::~Loop() {
  if (wake_ >= 0) {
    ::close(wake_);
  }
}

bool Loop::start_thread() {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    return false;  // the user's process limit is reached
  }
  return true;
}

void Loop::stop() {
  is_stopping_ = true;
  wake();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Loop::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
}

int Loop::prepare(std::vector<pollfd>& fds) {
  constexpr int blind_wait = 100;  // polls if wake() does not have a descriptor
  const int limit = prepare_more(fds);
  if (wake_ < 0) {
    return limit < 0 ? blind_wait : std::min(limit, blind_wait);
  }
  fds.push_back({wake_, POLLIN, 0});
  return limit;
}

void Loop::step() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t waste = ::read(wake_, &count, sizeof count);
  do_step();
}

void Loop::run() {
  std::vector<pollfd> fds;
  while (!is_stopping_) {
    fds.clear();
    const int limit = prepare(fds);
    ::poll(fds.data(), fds.size(), limit);
    if (!is_stopping_) {
      step();
    }
  }
}

}  // namespace remote::agent
