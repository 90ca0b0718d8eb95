#pragma once

#include <sys/types.h>

#include "agent/host/descriptor.hpp"
#include "agent/host/host.hpp"
#include "wire/run.hpp"

namespace remote::agent {

// A process, the leader of its session, and this side of its inputs and outputs, which do not block.
struct StartedRun {
  pid_t pid = -1;
  Descriptor in{};  // none: an empty stdin; of a terminal the same file as `out`
  Descriptor out{};
  Descriptor err{};  // none if it has a terminal
};

// Throws CannotStart, and std::runtime_error if it cannot open a terminal.
StartedRun start_run(const Host& host, const wire::RunRequest& request);

// Changes the size of the terminal.
void resize_terminal(int terminal, const TerminalSize& size);

}  // namespace remote::agent
