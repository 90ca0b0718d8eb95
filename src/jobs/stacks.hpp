#pragma once

#include <string>
#include <vector>

#include <remote/job.hpp>
#include <remote/launch.hpp>

#include "jobs/any_agent.hpp"
#include "jobs/site.hpp"
#include "wire/stacks.hpp"

// The Python stacks of running jobs: asking for them, and putting equal ones together.

namespace remote::jobs {

// Asks a server for the stacks of these jobs on it. Searches for py-spy on the server's PATH, then in the
// environment that the sh text `activate` enters. Jobs that have ended have no processes. Throws like
// servers::Agent::ask().
std::vector<wire::ProcessStack> ask_stacks(const AnyAgent& agent, const RemoteFolder& folder,
                                           const std::vector<JobId>& ids, const std::string& activate = "");

// Asks all servers of these jobs, side by side.
StacksResult read_stacks(const Site& site, const std::vector<Job>& jobs);

}  // namespace remote::jobs
