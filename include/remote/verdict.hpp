#pragma once

#include <string>
#include <vector>

#include <remote/job.hpp>
#include <remote/launch.hpp>

namespace remote {

// From the jobs of a launch as they are now, all times on this machine's clock. Of those that failed, the one
// is the first that did so by itself (Job::after_peer) at the earliest time (Job::failed_at, or the second of
// its end where that is not known). `workers` are failed processes of jobs that are agents: they count in the
// agent's place. `gone` are servers that were given up: one of them is the cause where no failure tells of
// another. Asks nobody: last_lines is empty.
Verdict verdict_of(const std::vector<Job>& jobs, const std::vector<Job>& workers = {},
                   const std::vector<std::string>& gone = {});

// The state of a launch as a whole, by the verdict about these jobs.
JobState launch_state(const std::vector<Job>& jobs, const Verdict& verdict);

}  // namespace remote
