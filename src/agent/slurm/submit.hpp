#pragma once

#include <string>
#include <vector>

#include "agent/host/host.hpp"
#include "agent/job/record.hpp"
#include "wire/start.hpp"

namespace remote::agent {

// Submits these jobs, whose folders are complete. Each `batch.sh` runs one job or an array of them, after the
// jobs listed in the file `after`. Writes each job's Slurm number into its file `slurm`. Jobs that cannot be
// submitted never start.
std::vector<wire::StartedJob> submit_to_slurm(const Host& host, const JobsFolder& folder,
                                              const std::vector<std::string>& ids);

}  // namespace remote::agent
