#pragma once

#include <string>

#include <nlohmann/json.hpp>
#include <remote/check.hpp>

#include "ui/terminal.hpp"

// Output of `remote check`.

namespace remote::cli {

// In the documented format (docs/check.md).
nlohmann::json to_json(const CheckReport& report);
nlohmann::json to_json(const ServerFacts& facts);

// A row for each server, then the problems and their fixes, with equal ones of several servers grouped.
// `all`: a row for each finding instead of each server.
std::string check_table(const CheckReport& report, const ui::Terminal& terminal, bool all = false);

// "gpu-1: fail: rsync: is not installed"
std::string finding_line(const std::string& server, const Finding& finding);

// The fixes that Project::mend runs, each with its servers; "" if there are none.
std::string harmless_text(const CheckReport& report);
// A script per server with the fixes that need root; "" if there are none.
std::string root_scripts(const CheckReport& report);

}  // namespace remote::cli
