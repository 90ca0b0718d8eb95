#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <remote/why.hpp>

// Why a launch stands still, in words and as JSON.

namespace remote::cli {

// The verdict: a headline, and lines that tell more.
std::vector<std::string> why_lines(const Why& why);
// What each rank and each server showed.
std::vector<std::string> why_evidence(const Why& why);
// The command that helps next.
std::string why_next(const Why& why);
nlohmann::ordered_json why_json(const Why& why);

}  // namespace remote::cli
