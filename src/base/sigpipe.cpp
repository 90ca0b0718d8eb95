#include "base/sigpipe.hpp"

#include <ctime>

namespace remote {
namespace {

sigset_t sigpipe_alone() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

bool sigpipe_is_pending() {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

}  // namespace

SigpipeGuard::SigpipeGuard() : pending_before_(sigpipe_is_pending()) {
  const sigset_t blocked = sigpipe_alone();
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

SigpipeGuard::~SigpipeGuard() {
  const sigset_t set = sigpipe_alone();
  // What was pending before is not ours. Ours has to go before the mask does, or it would end the process
  // now.
  if (!pending_before_ && sigpipe_is_pending()) {
#ifdef __APPLE__
    int number = 0;
    ::sigwait(&set, &number);
#else
    const timespec now{};  // another thread may have taken it meanwhile, if it was sent to the whole process
    ::sigtimedwait(&set, nullptr, &now);
#endif
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace remote
