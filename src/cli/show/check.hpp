#pragma once

#include <string>

#include <nlohmann/json.hpp>
#include <remote/check.hpp>

#include "ui/terminal.hpp"

// What `remote check` prints.

namespace remote::cli {

// As the contract has it (docs/check.md).
nlohmann::json to_json(const CheckReport& report);
std::string check_table(const CheckReport& report, const ui::Terminal& terminal);

}  // namespace remote::cli
