#pragma once

#include <string>

#include <sys/types.h>

namespace remote::agent {

// The output of a rank on a server with several: each line goes to ranks/RANK.out or ranks/RANK.err of the
// job, and as "[RANK] line" to stdout or stderr of this process.
struct LabelledOutput {
  pid_t labeller = 0;  // the process that copies the lines; 0: there is none
  int out = -1;        // the rank writes here
  int err = -1;
};

// Starts the labeller, in the job's folder. It survives signals to the rank's process group, and exits when
// no process has the rank's output open any more. Without it the rank's output has no labels, but nothing is
// lost.
LabelledOutput start_labeller(const std::string& rank);

}  // namespace remote::agent
