#pragma once

#include <string>

#include <nlohmann/json.hpp>
#include <remote/check.hpp>

#include "ui/terminal.hpp"

// What `remote check` prints.

namespace remote::cli {

// As the contract has it (docs/check.md).
nlohmann::json to_json(const CheckReport& report);
nlohmann::json to_json(const ServerFacts& facts);

// A row for each server, then what is not well and how to mend it, told once for all servers that have the
// same. `all`: a row for each finding instead of one for each server.
std::string check_table(const CheckReport& report, const ui::Terminal& terminal, bool all = false);

// "gpu-1: fail: rsync: is not installed"
std::string finding_line(const std::string& server, const Finding& finding);

// The fixes that Project::mend runs, each with its servers; "" where there are none.
std::string harmless_text(const CheckReport& report);
// A script for each server with the fixes that need root there; "" where there are none.
std::string root_scripts(const CheckReport& report);

}  // namespace remote::cli
