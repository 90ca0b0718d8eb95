#pragma once

#include <string>

#include <nlohmann/json.hpp>
#include <remote/burn.hpp>

#include "ui/terminal.hpp"

// Output of `remote check --burn`.

namespace remote::cli {

// The value of facts/burn for a server (docs/check/network.md).
nlohmann::json to_json(const Burn& burn, const std::string& server);
// A row per rank, and the bandwidth between them. "" if the burn failed.
std::string burn_text(const Burn& burn, const ui::Terminal& terminal);

}  // namespace remote::cli
