#pragma once

#include <string>

#include <nlohmann/json.hpp>
#include <remote/burn.hpp>

#include "ui/terminal.hpp"

// What `remote check --burn` prints.

namespace remote::cli {

// For a server: what stands under facts/burn (docs/check/network.md).
nlohmann::json to_json(const Burn& burn, const std::string& server);
// A row for each rank, and what they exchange. "": it could not be done.
std::string burn_text(const Burn& burn, const ui::Terminal& terminal);

}  // namespace remote::cli
