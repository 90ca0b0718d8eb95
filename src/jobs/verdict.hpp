#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <remote/launch.hpp>

#include "jobs/job.hpp"
#include "ssh/connection.hpp"

namespace remote::jobs {

// From the jobs of a launch as they are now, all times on this machine's clock. The first that failed is told
// by Job::failed_ms, and where that is not known, by the second of the end. Asks nobody: last_lines is empty.
Verdict verdict_of(const std::vector<Job>& jobs);

// The last lines that a job wrote to its stderr; foreign text. Throws Error.
std::vector<std::string> last_stderr(ssh::Connection& connection, const Job& job, const Cancel& cancel);

}  // namespace remote::jobs
