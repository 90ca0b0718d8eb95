#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>
#include <remote/launch.hpp>

// What a launch would start, in words and as JSON.

namespace remote::cli {

// " (auto: one for each GPU)"; "" if the numbers of ranks were given.
std::string chosen_ranks_text(const Plan& plan);

// A plan as --dry-run shows it. Values of variables that look secret are masked, and what looks like one in
// the command.
std::string plan_text(const Plan& plan);
nlohmann::ordered_json plan_json(const Plan& plan);

}  // namespace remote::cli
