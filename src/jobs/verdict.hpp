#pragma once

#include <string>
#include <vector>

#include <remote/job.hpp>
#include <remote/verdict.hpp>

#include "ssh/connection.hpp"

namespace remote::jobs {

// Of those that failed, the one whose failure the others followed from. The times alone do not tell: a rank
// that SIGKILL ends says nothing, its supervisor may be slow to notice, and servers' clocks differ. What the
// others say tells more: that a peer is gone.
// nullptr for none.
const Job* first_of(const std::vector<Job>& failures);

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
// its reason's `number` and `result` are then that rank and how it ended, its `text` the node of Slurm on
// which that was, and failed_at and after_peer are the rank's. verdict_of() goes by them. The job itself
// where the server does not tell.
Job with_failed_rank(ssh::Connection& connection, Job job, const Cancel& cancel);

// The last lines of these files of the jobs' folders, which are in one place (JobsAt): as many of each file
// at most, job by job; of a progress bar its last state. Foreign text. Missing files have none. Throws Error.
std::vector<std::string> last_lines(ssh::Connection& connection, const std::vector<Job>& jobs, int count,
                                    const std::vector<std::string>& files, const Cancel& cancel);

}  // namespace remote::jobs
