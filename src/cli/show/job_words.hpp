#pragma once

#include <string>
#include <vector>

#include <remote/job.hpp>

// Jobs in words, and as JSON.

namespace remote::cli {

// "failed exit 1", "killed SIGTERM by ada@laptop", "ended after rank 2", "running": a job's state and why.
std::string state_text(const Job& job);
// "job 3 (rank 2 on node-2)".
std::string describe(const Job& job);
// A job as one JSON object, jobs as one JSON array, with a newline.
std::string job_json(const Job& job);
std::string jobs_json(const std::vector<Job>& jobs);
// 0 for a success; the exit code or 128+N of what failed; 1 where neither is known.
int exit_code_of(const Job& job);

}  // namespace remote::cli
