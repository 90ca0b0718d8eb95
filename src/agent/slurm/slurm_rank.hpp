#pragma once

#include <optional>
#include <string>

#include "agent/host/host.hpp"

namespace remote::agent {

// A process of a launch under Slurm, as started by srun.
struct SlurmRank {
  bool is_agent = false;  // torchrun's, which starts the ranks of its node
  int count = 1;          // ranks on each node
  // Seconds between its failure and stopping the others; nullopt: they continue.
  std::optional<int> grace{};
};

// Runs this process of the launch, in the job's folder, and records its end. After a failure, it waits for
// the grace before it exits, because its exit makes srun kill the others. Returns the exit status.
int run_slurm_rank(const Host& host, const Path& folder, const SlurmRank& rank);

}  // namespace remote::agent
