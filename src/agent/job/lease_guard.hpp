#pragma once

#include <string>

#include "agent/host/host.hpp"
#include "agent/job/record.hpp"

namespace remote::agent {

// Starts a process that enforces the lease of a job with restarts (docs/resilience.md). It stops the ranks
// when the lease expires, even if the lifeline of this server is dead. If the lifeline remains dead, it stops
// the job for good, with the loss of `hub`, a percent-encoded name, as the cause. Call this before the
// current process becomes a subreaper; otherwise the new process would become its child.
void start_lease_guard(const Host& host, const JobsFolder& folder, const std::string& id, int lease_s,
                       const std::string& hub);

}  // namespace remote::agent
