#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <remote/history.hpp>

// Differences between launches, as a table and as data.

namespace remote::cli {

// The title of a difference's row: "torch on node-1, node-2".
std::string difference_name(const LaunchDifference& difference);

// "part", "name", "servers", "values".
nlohmann::ordered_json differences_json(const std::vector<LaunchDifference>& differences);

}  // namespace remote::cli
