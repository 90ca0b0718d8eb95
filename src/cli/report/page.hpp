#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <remote/history.hpp>
#include <remote/report.hpp>

// The page of `remote report`: one HTML file that needs nothing else. Its parts stand beside this file, and
// the charts in third_party/uplot; all are compiled in.

namespace remote::cli {

// What the page shows, as data (docs/report.md). `watch`: the page reloads itself.
nlohmann::ordered_json report_json(const Report& report, const std::string& project, bool watch);

// The same of several launches and their reports, in the same order: their curves over each other, and what
// differs between them. Of one whose jobs were removed the report is empty.
nlohmann::ordered_json comparison_json(const std::vector<PastLaunch>& launches,
                                       const std::vector<Report>& reports, const std::string& project);

// The page with this data, which is the report's, in it. Foreign text in it stays text.
std::string report_page(const nlohmann::ordered_json& data, const Report& report);

// A part of the page by its file's name: "page.js".
std::string_view report_part(std::string_view name);

}  // namespace remote::cli
