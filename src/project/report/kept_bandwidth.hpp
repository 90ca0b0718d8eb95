#pragma once

#include <optional>
#include <vector>

#include <remote/report.hpp>

#include "config/config.hpp"

// What `check --bandwidth` found last, in .remote/bandwidth.json, so that reports can show it.

namespace remote::project {

// Replaces what was there. `network` has its bandwidth. Throws Error.
void keep_bandwidth(const config::Config& config, const Network& network);

// nullopt: none is kept, or one of these jobs is on a server that took no part, or all are on one server.
// Throws Error for a file that is no such record.
std::optional<MeasuredBandwidth> kept_bandwidth(const config::Config& config, const std::vector<Job>& jobs);

}  // namespace remote::project
