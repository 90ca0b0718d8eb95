#pragma once

#include <string>

#include <sys/types.h>

namespace remote::agent {

// The output of a rank on a server with several ranks: each line goes to the job's ranks/RANK.out or
// ranks/RANK.err and, as "[RANK] line", to this process's stdout or stderr.
struct LabelledOutput {
  pid_t labeller = 0;  // the process that copies the lines; 0: none
  int out = -1;        // the rank writes here
  int err = -1;
};

// Starts the labeller. The working directory must be the job's folder. It survives signals to the rank's
// process group, and exits when the rank's output is closed everywhere. Without it, the rank's output has no
// labels, but nothing is lost.
LabelledOutput start_labeller(const std::string& rank);

}  // namespace remote::agent
