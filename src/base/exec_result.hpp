#pragma once

#include <string>

#include <remote/exit_status.hpp>

namespace remote {

// How a program ended, here or on a server, and what it printed.
struct ExecResult {
  ExitStatus status = ExitStatus::exited(0);
  std::string out;
  std::string err;

  // The status, and the last lines of `err`: "exit 1: no space left".
  std::string describe() const;
};

}  // namespace remote
