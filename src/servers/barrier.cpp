#include "servers/barrier.hpp"

#include <array>

#include <fcntl.h>
#include <unistd.h>

namespace remote::servers {

Barrier::Barrier(std::size_t members) : members_(members) {
  for (std::size_t i = 0; i < members; ++i) {
    pipes_.push_back(make_pipe());
    for (const int fd : {pipes_.back().read.get(), pipes_.back().write.get()}) {
      ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
  }
}

void Barrier::check() {
  if (arrived_ < members_ || members_ == 0) {
    return;
  }
  arrived_ = 0;
  ++round_;
  for (const Pipe& pipe : pipes_) {
    [[maybe_unused]] const auto sent =
        ::write(pipe.write.get(), "", 1);  // if the pipe is full, it is already readable
  }
}

void Barrier::leave(std::size_t round) {
  const std::lock_guard lock(mutex_);
  if (round > round_) {
    --arrived_;  // this member had arrived, but left without waiting for the others
  }
  --members_;
  check();
}

void Barrier::Member::arrive() {
  const std::lock_guard lock(barrier_.mutex_);
  ++round_;
  ++barrier_.arrived_;
  barrier_.check();
}

bool Barrier::Member::complete() {
  const std::lock_guard lock(barrier_.mutex_);
  std::array<char, 64> waste{};
  while (::read(wake(), waste.data(), waste.size()) > 0) {
  }
  return barrier_.round_ >= round_;
}

}  // namespace remote::servers
