#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>
#include <remote/launch.hpp>

// The plan of a launch as text and as JSON.

namespace remote::cli {

// " (auto: one for each GPU)"; "" if the number of ranks was given.
std::string chosen_ranks_text(const Plan& plan);

// A plan for --dry-run. Masks values of variables that look secret, and secrets in the command.
std::string plan_text(const Plan& plan);
nlohmann::ordered_json plan_json(const Plan& plan);

}  // namespace remote::cli
