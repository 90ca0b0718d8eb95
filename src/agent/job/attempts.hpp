#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "agent/host/path.hpp"
#include "wire/jobs.hpp"

namespace remote::agent {

// Reads the earlier attempts of a launch from the file `attempts` of its first job. Skips malformed lines.
std::vector<wire::AttemptRecord> read_attempts(const Path& job_folder);

// Parses NUMBER BEGAN FAILED NEXT CAUSE CODE RANK LEFT_OUT SERVER [WITHOUT].
std::optional<wire::AttemptRecord> parse_attempt(std::string_view line);

}  // namespace remote::agent
