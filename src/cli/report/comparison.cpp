#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "cli/context.hpp"
#include "cli/report/page.hpp"
#include "cli/show/differences.hpp"
#include "cli/show/launches.hpp"

namespace remote::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string label_of(const PastLaunch& launch) {
  return keys_of(launch) + (launch.name.empty() ? "" : " " + visible_line(launch.name));
}

// Adds one curve for each name, that of the lowest rank that has it. The input is sorted by name, then by
// rank.
void add_curves(const std::vector<Curve>& curves, const std::string& label, std::size_t index, Json& all) {
  std::set<std::string> names;
  for (const Curve& curve : curves) {
    if (names.insert(curve.name).second) {
      all.push_back({{"name", curve.name},
                     {"label", label},
                     {"color", index},
                     {"over", curve.over},
                     {"at", curve.at},
                     {"values", curve.values},
                     {"thinned", curve.thinned}});
    }
  }
}

}  // namespace

Json comparison_json(const std::vector<PastLaunch>& launches, const std::vector<Report>& reports,
                     const std::string& project) {
  Json all = Json::array();
  Json curves = Json::array();
  Json problems = Json::array();
  std::vector<std::string> keys;
  std::size_t succeeded = 0;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const PastLaunch& launch = launches[i];
    const std::string label = label_of(launch);
    keys.push_back(keys_of(launch));
    succeeded += launch.state == JobState::succeeded ? 1 : 0;
    all.push_back({{"label", label},
                   {"key", launch.first_key},
                   {"launch", launch.id.text()},
                   {"state", to_string(launch.state)},
                   {"began_at", format_utc(launch.began_at)},
                   {"note", visible_line(launch.note)},
                   {"command", visible_line(launch.command)}});
    add_curves(reports[i].curves, label, i, curves);
    for (const Error& error : reports[i].errors) {
      problems.push_back(label + ": " + error.message());
    }
    if (reports[i].jobs.empty()) {
      problems.push_back(label + ": its jobs were removed, and its curves with them");
    }
  }
  // Groups curves of the same name from all launches; losses first, as in each report.
  std::vector<std::string> order;
  for (const Json& curve : curves) {
    order.push_back(curve["name"]);
  }
  const auto place = [&](const Json& curve) {
    return std::ranges::find(order, curve["name"].get<std::string>());
  };
  std::stable_sort(curves.begin(), curves.end(),
                   [&](const Json& one, const Json& other) { return place(one) < place(other); });
  const std::vector<LaunchDifference> found = differences(launches);
  Json rows = differences_json(found);
  for (std::size_t i = 0; i < found.size(); ++i) {
    rows[i]["name"] = difference_name(found[i]);
    for (Json& value : rows[i]["values"]) {
      value = value.is_null() ? value : Json(visible_line(value.get<std::string>()));
    }
  }
  return {{"project", project},
          {"title", "launches " + join(keys, ", ")},
          {"state", fmt::format("{} launches", launches.size())},
          {"headline", fmt::format("{} succeeded", succeeded)},
          {"problems", std::move(problems)},
          {"launches", std::move(all)},
          {"differences", std::move(rows)},
          {"curves", std::move(curves)},
          {"made_at", format_utc(now_seconds())},
          {"version", REMOTE_VERSION}};
}

}  // namespace remote::cli
