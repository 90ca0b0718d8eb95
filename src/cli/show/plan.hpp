#pragma once

#include <string>

#include <remote/launch.hpp>

namespace remote::cli {

// A plan as --dry-run shows it, as text and as JSON. Values of variables that look secret are masked, and
// what looks like one in the command.
std::string plan_text(const Plan& plan);
std::string plan_json(const Plan& plan);

}  // namespace remote::cli
