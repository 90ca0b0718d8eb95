#pragma once

#include <string>
#include <vector>

#include <remote/job.hpp>
#include <remote/launch.hpp>

namespace remote {

// The verdict about a launch, from its jobs in their current state; all times are by this machine's clock.
// The first failure is the earliest job that failed by itself (Job::after_peer is false), by Job::failed_at
// or, if unknown, by the second of its end. `workers` are failed processes of jobs that are agents: they
// count instead of the agent. `gone` are servers that were given up: one of them is the cause if no failure
// points to another one. Contacts no server: last_lines is empty.
Verdict verdict_of(const std::vector<Job>& jobs, const std::vector<Job>& workers = {},
                   const std::vector<std::string>& gone = {});

// The state of the whole launch, given the verdict about these jobs.
JobState launch_state(const std::vector<Job>& jobs, const Verdict& verdict);

}  // namespace remote
