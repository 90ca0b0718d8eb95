#pragma once

#include <vector>

#include "agent/host/path.hpp"
#include "wire/jobs.hpp"

namespace remote::agent {

// How a failed rank of a job ended, from a line RANK KIND CODE MS [BY] of the file `failures/agent`.
struct WorkerEnd {
  int rank = 0;
  wire::JobEnd end;  // always has a time
};

// In the order in which they ended. A rank can occur several times. Skips malformed lines.
std::vector<WorkerEnd> read_worker_ends(const Path& job_folder);

}  // namespace remote::agent
