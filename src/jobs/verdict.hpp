#pragma once

#include <string>
#include <vector>

#include <remote/job.hpp>
#include <remote/verdict.hpp>

#include "jobs/ask.hpp"

namespace remote::jobs {

// Returns the failure that caused the others; nullptr for none. Times alone are not enough: a rank killed by
// SIGKILL reports nothing, its supervisor may be slow, and servers' clocks differ. Other ranks' reports that
// a peer is gone are better evidence.
const Job* first_of(const std::vector<Job>& failures);

// When this server last reported on any of these jobs; nullopt: never.
std::optional<Instant> find_last_report(const std::vector<Job>& jobs, const std::string& server);

// A failed process of a job with several ranks, such as an agent of torchrun: that job, with the rank, result
// and times of the process. Job::ranks is 1.
struct Worker {
  Job job;
  // Taken from its exception or its stderr; untrusted text.
  std::vector<std::string> last_lines;
};

// The recorded failed processes of such a job (src/server/torch_agent.py, src/agent/mpi/rank.cpp and
// src/agent/slurm/slurm_rank.cpp). Throws Error.
std::vector<Worker> failed_workers(const AnyAgent& server, const Job& job);

// For a failed job with several ranks, returns the job with the end of the rank that failed first. A job
// counts as failed too if its launch stopped it because of one of its own ranks (after which mpirun hung).
// The reason's `number` and `result` are then that rank and its result, `text` is its Slurm node, and
// failed_at and after_peer are the rank's. verdict_of() uses them. Returns the job unchanged if the server
// does not know the rank.
Job with_failed_rank(const AnyAgent& server, Job job);

// The last lines of these files in the jobs' folders, which must be in one place (JobsAt): at most `count`
// per file, job by job; only the last state of a progress bar. Skips missing files. The lines are untrusted
// text. Throws Error.
std::vector<std::string> last_lines(const AnyAgent& server, const std::vector<Job>& jobs, int count,
                                    const std::vector<std::string>& files);

}  // namespace remote::jobs
