#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <remote/history.hpp>
#include <remote/report.hpp>

// The page of `remote report`: a self-contained HTML file. Its parts are in this folder, the chart library is
// in third_party/uplot; all are compiled in.

namespace remote::cli {

// The data of the page (docs/report.md). `watch`: the page reloads itself.
nlohmann::ordered_json report_json(const Report& report, const std::string& project, bool watch);

// The data for several launches and their reports, in the same order: overlaid curves, and differences. The
// report of a launch whose jobs were removed is empty.
nlohmann::ordered_json comparison_json(const std::vector<PastLaunch>& launches,
                                       const std::vector<Report>& reports, const std::string& project);

// The page with this data, which is from the report. Untrusted text in it is escaped.
std::string report_page(const nlohmann::ordered_json& data, const Report& report);

// A part of the page, by file name: "page.js".
std::string_view report_part(std::string_view name);

}  // namespace remote::cli
