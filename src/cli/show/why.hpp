#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <remote/why.hpp>

// The reasons why a launch hangs, as text and as JSON.

namespace remote::cli {

// The verdict: a headline, followed by details.
std::vector<std::string> why_lines(const Why& why);
// The observations for each rank and each server.
std::vector<std::string> why_evidence(const Why& why);
// The command to run next.
std::string why_next(const Why& why);
nlohmann::ordered_json why_json(const Why& why);

}  // namespace remote::cli
