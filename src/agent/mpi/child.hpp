#pragma once

#include <array>
#include <csignal>
#include <string_view>

#include <sys/types.h>

#include "wire/jobs.hpp"

namespace remote::agent {

// Ends this process with a message on stderr.
[[noreturn]] void exit_with_error(std::string_view text);

// Ignores the signals that are sent to a whole process group when a job ends, because this process has to
// record how its child ends. A child gets the previous actions.
class GroupSignals {
 public:
  GroupSignals();
  // Call this in the child.
  void restore() const;

 private:
  static constexpr std::array<int, 5> signals{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
  std::array<void (*)(int), signals.size()> before_{};
};

struct ChildRequest {
  const char* const* argv;                 // argv[0] is looked up on PATH
  const char* const* fallback = nullptr;   // run if argv[0] is missing
  const char* folder = ".";                // working directory
  std::array<int, 3> streams{-1, -1, -1};  // the child's stdin, stdout and stderr; -1: inherited
  const GroupSignals* signals = nullptr;   // restored in the child
};

// Starts a program. If it cannot be executed, the child prints the reason to its stderr and exits with 127.
// Throws CannotStart.
pid_t start_child(const ChildRequest& request);
wire::ProcessEnd wait_for_child(pid_t child);
// The exit status that a shell would return for this end: 128+N for signal N.
int to_exit_code(const wire::ProcessEnd& end);

}  // namespace remote::agent
