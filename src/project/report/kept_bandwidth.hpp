#pragma once

#include <optional>
#include <vector>

#include <remote/report.hpp>

#include "config/config.hpp"

// The latest result of `check --bandwidth`, stored in .remote/bandwidth.json for reports.

namespace remote::project {

// Replaces the stored result. `network.bandwidth` must be set. Throws Error.
void keep_bandwidth(const config::Config& config, const Network& network);

// nullopt: none stored, a job's server did not take part, or all jobs are on one server. Throws Error if the
// file is invalid.
std::optional<MeasuredBandwidth> kept_bandwidth(const config::Config& config, const std::vector<Job>& jobs);

}  // namespace remote::project
