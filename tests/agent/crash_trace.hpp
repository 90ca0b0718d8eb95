#pragma once

#include <csignal>

#include <execinfo.h>
#include <unistd.h>

namespace remote::agent::test {

// From now on a crash prints the stack addresses, for addr2line, before it ends this program.
inline void trace_crashes() {
  void* warm_up = nullptr;
  ::backtrace(&warm_up, 1);  // loads a library now, because a signal handler must not
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT}) {
    std::signal(signal, [](int number) {
      constexpr int most = 64;
      void* frames[most];
      ::backtrace_symbols_fd(frames, ::backtrace(frames, most), STDERR_FILENO);
      std::signal(number, SIG_DFL);
      std::raise(number);
    });
  }
}

}  // namespace remote::agent::test
