// Differences between recorded launches.

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/history.hpp>

#include "base/json.hpp"
#include "base/strings.hpp"
#include "jobs/launch_request_json.hpp"
#include "project/core.hpp"
#include "project/past_code.hpp"
#include "servers/sent_state.hpp"

namespace remote {
namespace {

using Part = LaunchDifference::Part;
using Value = std::optional<std::string>;
using Values = std::map<std::string, std::string>;

// Adds a row for each name whose values are not all equal. With `all`, launches without the name count too.
void compare(const std::vector<Values>& launches, Part part, bool all, std::vector<LaunchDifference>& found,
             const std::string& server = "") {
  std::set<std::string> names;
  for (const Values& values : launches) {
    for (const auto& [name, value] : values) {
      names.insert(name);
    }
  }
  for (const std::string& name : names) {
    LaunchDifference row;
    row.part = part;
    row.name = name;
    std::set<Value> different;
    for (const Values& values : launches) {
      const auto value = values.find(name);
      row.values.push_back(value == values.end() ? std::nullopt : Value(value->second));
      if (all || row.values.back()) {
        different.insert(row.values.back());
      }
    }
    if (different.size() < 2) {
      continue;
    }
    auto same = std::ranges::find_if(found, [&](const LaunchDifference& one) {
      return one.part == part && one.name == name && one.values == row.values;
    });
    if (same == found.end()) {
      same = found.insert(same, std::move(row));
    }
    if (!server.empty()) {
      same->servers.push_back(server);
    }
  }
}

template <typename Take>
std::vector<Values> each(const std::vector<PastLaunch>& launches, const Take& take) {
  std::vector<Values> all;
  for (const PastLaunch& launch : launches) {
    take(launch, all.emplace_back());
  }
  return all;
}

void take_result(const PastLaunch& launch, Values& values) {
  values["state"] = std::string(to_string(launch.state));
  if (launch.result) {
    values["state"] += " " + launch.result->describe();
  }
  if (launch.ended_at) {
    values["seconds"] = std::to_string((*launch.ended_at - launch.began_at).count());
  }
  values["commit"] = launch.commit.substr(0, 12) + (launch.clean || launch.commit.empty() ? "" : "+");
}

void take_options(const PastLaunch& launch, Values& values) {
  values["launcher"] = to_string(launch.beginning.launcher);
  values["ranks"] = std::to_string(launch.ranks);
  values["servers"] = join(launch.servers, ", ");
  values["remote"] = launch.version;
  if (!launch.request) {
    return;
  }
  const auto request = jobs::to_json(*launch.request, launch.secrets);
  for (const auto& [name, value] : request.items()) {
    if (name != "env" && name != "servers" && name != "tags" && !value.is_null()) {
      values[name] = value.is_string() ? value.get<std::string>() : dump_json_line(value);
    }
  }
}

// Has values only if the record does.
void take_variables(const PastLaunch& launch, Values& values) {
  for (const std::string& name : launch.variables) {
    values[name] = launch.request ? "set by configs.yaml" : "set";
  }
  for (const auto& [name, value] : launch.request ? launch.request->env : Env()) {
    const bool secret = std::ranges::find(launch.secrets, name) != launch.secrets.end();
    values[name] = secret ? std::string(secret_mask) : value;
  }
}

// The facts of one server that are (or are not) about packages. Git compares its code.
void take_facts(const PastLaunch& launch, const std::string& server, bool packages, Values& values) {
  constexpr std::array of_packages{"python", "torch", "cuda", "hip", "container"};
  const auto& setups = launch.beginning.servers;
  const auto setup = std::ranges::find(setups, server, &ServerSetup::server);
  for (const auto& [name, value] : setup == setups.end() ? Env() : setup->facts) {
    const bool is_package = std::ranges::find(of_packages, name) != of_packages.end();
    if (is_package == packages && name != "code" && name != "changed here" && name != "changed there") {
      values[name] = value;
    }
  }
}

}  // namespace

std::vector<LaunchDifference> differences(const std::vector<PastLaunch>& launches) {
  std::vector<LaunchDifference> found;
  compare(each(launches, take_result), Part::result, true, found);
  compare(each(launches, [](const auto& one, Values& values) { values[""] = one.command; }), Part::command,
          true, found);
  compare(each(launches, take_options), Part::options, false, found);
  compare(each(launches, take_variables), Part::variables, true, found);
  std::set<std::string> servers;
  for (const PastLaunch& launch : launches) {
    servers.insert(launch.servers.begin(), launch.servers.end());
  }
  for (const bool packages : {true, false}) {
    for (const std::string& server : servers) {
      compare(
          each(launches, [&](const auto& one, Values& values) { take_facts(one, server, packages, values); }),
          packages ? Part::packages : Part::servers, false, found, server);
    }
  }
  compare(each(launches,
               [](const auto& one, Values& values) {
                 for (const NamedNumber& number : one.numbers) {
                   values[number.name] = fmt::format("{:.6g}", number.value);
                 }
               }),
          Part::numbers, true, found);
  return found;
}

LaunchDiff History::diff(const std::string& from, const std::string& to, const Cancel& cancel) const {
  LaunchDiff diff;
  diff.from = launch(from);
  std::optional<PastLaunch> other = to == "now" ? std::nullopt : std::optional(launch(to));
  if (other && other->id == diff.from.id) {
    // A rerun has the same name as the launch that it repeats: the name then means the earlier launch.
    const auto before = [&](const std::string& name) -> std::optional<PastLaunch> {
      for (const LaunchSummary& one : name == diff.from.name ? list() : std::vector<LaunchSummary>()) {
        if (one.name == name && one.id != diff.from.id) {
          return launch(one.id.text());
        }
      }
      return std::nullopt;
    };
    if (auto older = before(from)) {
      diff.from = *std::move(older);
    } else if ((older = before(to))) {
      other = std::move(older);
    } else {
      throw Error::usage(fmt::format("'{}' and '{}' are the same launch, {}", visible_line(from, 60),
                                     visible_line(to, 60), diff.from.first_key),
                         "", "name another one by its key")
          .mended_by(Remedy::list_launches);
    }
  }
  project::PastCode code(project_, cancel);
  const auto first = code.then(diff.from);
  project::PastCode::Tree second;
  if (to == "now") {
    second = code.now();
  } else {
    diff.to = std::move(other);
    second = code.then(*diff.to);
    diff.differences = differences({diff.from, *diff.to});
  }
  diff.code_from = first.kept;
  diff.code_to = second.kept;
  diff.compared = first.kept == CodeKept::kept && second.kept == CodeKept::kept;
  const config::Config config = config::load(project_);
  const auto had = project::files_sent(config, diff.from);
  const auto has = diff.to ? project::files_sent(config, *diff.to) : project::files_here(config, cancel);
  if (diff.compared) {
    diff.files = code.changed(first, second);
    diff.code = code.diff(first, second);
    diff.unkept =
        had && has ? code.changed_without_git(first, second, *had, *has) : std::vector<std::string>();
  } else {
    diff.compared = had && has;
    diff.files = diff.compared ? has->differing_from(*had) : std::vector<std::string>();
  }
  cancel.check();
  return diff;
}

}  // namespace remote
