#pragma once

#include <string>
#include <vector>

#include <remote/job.hpp>
#include <remote/launch.hpp>

#include "ssh/connection.hpp"

namespace remote::jobs {

// From the jobs of a launch as they are now, all times on this machine's clock. Job::failed_ms tells which
// one failed first, or the second of its end where that is not known. Asks nobody: last_lines is empty.
Verdict verdict_of(const std::vector<Job>& jobs);

// The last lines that a job wrote to its stderr; foreign text. Throws Error.
std::vector<std::string> last_stderr(ssh::Connection& connection, const Job& job, const Cancel& cancel);

}  // namespace remote::jobs
