#pragma once

#include "agent/job/backend.hpp"
#include "agent/slurm/ends.hpp"
#include "agent/slurm/queue.hpp"
#include "agent/slurm/tools.hpp"

namespace remote::agent {

// Determines the states of jobs from their results and from Slurm, even if Slurm has forgotten them or does
// not answer. Not thread-safe.
class SlurmStates {
 public:
  SlurmStates(const Host& host, const JobsFolder& folder, SlurmTools& tools, SlurmQueue& queue)
      : host_(host), folder_(folder), tools_(tools), queue_(queue), accounts_(tools) {}

  JobState find(JobRecord& job, Look look);

 private:
  JobState find_of_ended(const JobRecord& job, Look look);
  void await_end(const JobRecord& job);
  const SlurmRow* find_row(const JobRecord& job) const;

  const Host& host_;
  const JobsFolder& folder_;
  SlurmTools& tools_;
  SlurmQueue& queue_;
  SlurmAccounts accounts_;
  int waits_ = 0;
};

}  // namespace remote::agent
