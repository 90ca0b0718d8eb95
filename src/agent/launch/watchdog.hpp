#pragma once

#include <functional>

#include <sys/types.h>

#include "agent/host/descriptor.hpp"

namespace remote::agent {

// A forked process that takes over if this process dies without dismiss(). It needs no files, so it works
// even if the storage is gone.
class Watchdog {
 public:
  // `take_over` runs in the forked process, which then exits.
  explicit Watchdog(std::function<void()> take_over) : take_over_(std::move(take_over)) {}

  // Starts the process if none is running. Does nothing at the process limit.
  void keep();
  void dismiss();

 private:
  [[noreturn]] void wait(Descriptor alive) const;

  std::function<void()> take_over_;
  Descriptor pipe_;
  pid_t pid_ = -1;
};

}  // namespace remote::agent
