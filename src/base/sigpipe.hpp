#pragma once

#include <csignal>

namespace remote {

// While it lives, a write to a pipe or socket that nobody reads fails with EPIPE on this thread instead of
// ending the process; so it does on the threads that are made meanwhile. It changes no handler, so it is fit
// for a library: the other threads of the program are not concerned. Made and destroyed by one thread.
class SigpipeGuard {
 public:
  SigpipeGuard();
  ~SigpipeGuard();
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

 private:
  sigset_t before_{};
  bool pending_before_ = false;
};

}  // namespace remote
