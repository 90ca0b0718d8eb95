#pragma once

#include <vector>

#include "agent/job/record.hpp"
#include "wire/jobs.hpp"

// The records of a stop in the job's journal. These functions start no processes.

namespace remote::agent {

// Records the stop, before the first signal. `records_end`: this process is going to record the end, because
// the job's supervisor is dead.
wire::StopRequested record_stop(const Host& host, const JobRecord& job, const wire::StopRecord& stop,
                                bool records_end = false);
// Records the outcome. The job counts as running while the survivors are alive. `request` is nullptr if it
// was not recorded.
void finish_stop(const Host& host, const JobRecord& job, const wire::StopRequested* request,
                 bool had_no_effect, const std::vector<wire::Survivor>& survivors);

// Notifies a waiting supervisor that no other attempt follows.
void end_attempts(const JobRecord& job);

// Continues a lifeline that was stopped with SIGSTOP, so that it notices the end of its ranks.
void wake_lifeline(const Host& host, const JobRecord& job);

}  // namespace remote::agent
