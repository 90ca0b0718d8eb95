#pragma once

#include <string>
#include <vector>

#include <remote/job.hpp>
#include <remote/launch.hpp>

#include "jobs/any_agent.hpp"
#include "jobs/site.hpp"
#include "wire/stacks.hpp"

// The Python stacks of running jobs: requests them, and groups equal ones.

namespace remote::jobs {

// Requests the stacks of these jobs from a server. Searches for py-spy on the server's PATH, then in the
// environment that the shell text `activate` enters. Jobs that have ended have no processes. Throws like
// servers::Agent::ask().
std::vector<wire::ProcessStack> ask_stacks(const AnyAgent& agent, const RemoteFolder& folder,
                                           const std::vector<JobId>& ids, const std::string& activate = "");

// Asks all servers of these jobs in parallel.
StacksResult read_stacks(const Site& site, const std::vector<Job>& jobs);

}  // namespace remote::jobs
