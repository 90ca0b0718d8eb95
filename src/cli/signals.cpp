#include "cli/signals.hpp"

#include <cerrno>
#include <csignal>

#include <unistd.h>

namespace remote::cli {
namespace {

// The handler needs something that outlives main's locals; set once, before the handler is installed.
Cancel* signal_target() {
  static Cancel target;
  return &target;
}

extern "C" void on_signal(int number) {
  const int saved_errno = errno;
  Cancel* target = signal_target();
  if (target->cancelled() && number == SIGINT) {
    ::_exit(130);
  }
  target->cancel();
  errno = saved_errno;
}

}  // namespace

Cancel cancel_on_signals() {
  Cancel token = *signal_target();
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigemptyset(&ignore.sa_mask);
  ::sigaction(SIGPIPE, &ignore, nullptr);  // a reader of stdout that is gone is an error of write(2)
  return token;
}

}  // namespace remote::cli
