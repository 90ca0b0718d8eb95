#pragma once

#include <sys/types.h>

#include "agent/host/descriptor.hpp"
#include "agent/host/host.hpp"
#include "wire/run.hpp"

namespace remote::agent {

// A process, which leads its session, and the non-blocking descriptors of its input and outputs on this side.
struct StartedRun {
  pid_t pid = -1;
  Descriptor in{};  // empty if stdin is empty; for a terminal, the same file as `out`
  Descriptor out{};
  Descriptor err{};  // empty if it has a terminal
};

// Throws CannotStart, and std::runtime_error if it cannot open a terminal.
StartedRun start_run(const Host& host, const wire::RunRequest& request);

void resize_terminal(int terminal, const TerminalSize& size);

}  // namespace remote::agent
