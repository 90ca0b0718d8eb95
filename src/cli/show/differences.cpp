#include "cli/show/differences.hpp"

#include <algorithm>

#include "base/strings.hpp"
#include "cli/show/launches.hpp"

namespace remote::cli {

std::string difference_name(const LaunchDifference& difference) {
  const std::string name =
      difference.part == LaunchDifference::Part::command ? "command" : visible_line(difference.name);
  return name + (difference.servers.empty() ? "" : " on " + server_names(difference.servers));
}

nlohmann::ordered_json differences_json(const std::vector<LaunchDifference>& differences) {
  constexpr const char* parts[] = {"result",   "command", "options", "variables",
                                   "packages", "servers", "numbers"};
  auto all = nlohmann::ordered_json::array();
  for (const LaunchDifference& one : differences) {
    auto values = nlohmann::ordered_json::array();
    for (const auto& value : one.values) {
      values.emplace_back(or_null(value));
    }
    all.push_back({{"part", parts[static_cast<std::size_t>(one.part)]},
                   {"name", one.name},
                   {"servers", one.servers},
                   {"values", std::move(values)}});
  }
  return all;
}

}  // namespace remote::cli
