#pragma once

#include <string>
#include <vector>

#include <remote/job.hpp>
#include <remote/launch.hpp>

#include "ssh/connection.hpp"

namespace remote::jobs {

// From the jobs of a launch as they are now, all times on this machine's clock. Of those that failed, the one
// is the first that did so by itself (Job::after_peer) at the earliest time (Job::failed_ms, or the second of
// its end where that is not known). `workers` are failed processes of jobs that are agents: they count in the
// agent's place. `gone` are servers that were given up: one of them is the cause where no failure tells of
// another. Asks nobody: last_lines is empty.
Verdict verdict_of(const std::vector<Job>& jobs, const std::vector<Job>& workers = {},
                   const std::vector<std::string>& gone = {});

// A process that failed under a job that stands for several ranks, such as an agent of torchrun: that job,
// with the rank, result and times of the process; Job::ranks is 1.
struct Worker {
  Job job;
  // Of the exception that ended it, else of what it wrote to its stderr; foreign text.
  std::vector<std::string> last_lines;
};

// The failed processes of such a job, as far as they are on record (src/server/torch_agent.py, mpi_rank.sh
// and slurm_job.sh). Throws Error.
std::vector<Worker> failed_workers(ssh::Connection& connection, const Job& agent, const Cancel& cancel);

// The job with the end of the rank that failed first below it, where it has failed and stands for several:
// its reason's `number` and `result` are then that rank and how it ended, and failed_ms and after_peer are
// the rank's. verdict_of() goes by them. The job itself where the server does not tell.
Job with_failed_rank(ssh::Connection& connection, Job job, const Cancel& cancel);

// The last lines that a job wrote to its stderr; foreign text. Throws Error.
std::vector<std::string> last_stderr(ssh::Connection& connection, const Job& job, const Cancel& cancel);

}  // namespace remote::jobs
