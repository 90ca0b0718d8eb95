#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "jobs/job_json.hpp"
#include "jobs/json_fields.hpp"
#include "jobs/launch_request_json.hpp"

namespace remote::jobs {
namespace {

// Fields that a list of launches does not have.
template <typename AnyLaunch, typename Visitor>
void visit_details(AnyLaunch& launch, Visitor& visit) {
  visit.field("launcher", launch.beginning.launcher);
  visit.field("variables", launch.variables);
  visit.field("remote", launch.version);
  visit.field("branch", launch.branch);
  visit.field("untracked", launch.untracked, 0);
  visit.field("last_lines", launch.last_lines);
  visit.field("gone", launch.gone);
  visit.field("changed", launch.changed);
  visit.field("changed_in", launch.changed_in);
}

constexpr std::size_t most_entries = 65536;  // of a list in a launch record

const Json& list_of(const Json& record, const char* name) {
  const Json& list = record.at(name);
  if (!list.is_array() || list.size() > most_entries) {
    throw not_a_record(fmt::format("'{}' is not a list, or is too long", name));
  }
  return list;
}

}  // namespace

Json to_json(const LaunchSummary& launch) {
  Json object = Json::object();
  FieldWriter fields(object, true);
  visit_fields(launch, fields);
  return object;
}

Json to_json(const PastLaunch& launch) {
  Json record{{"version", launch_record_version}};
  FieldWriter fields(record, true);
  visit_fields<const LaunchSummary>(launch, fields);
  visit_details(launch, fields);
  record["news"] = launch.news;
  record["patch"] = launch.patch.empty() ? Json(nullptr) : Json(launch.patch.string());
  record["request"] = launch.request ? to_json(*launch.request, launch.secrets) : Json(nullptr);
  for (const char* list : {"setups", "steps", "jobs"}) {
    record[list] = Json::array();
  }
  for (const ServerSetup& one : launch.beginning.servers) {  // written as an array, because the order matters
    record["setups"].push_back(
        {{"server", one.server}, {"facts", one.facts}, {"clock_ahead", one.clock_ahead.count()}});
  }
  for (const LaunchStep& one : launch.beginning.steps) {
    record["steps"].push_back({{"name", one.name},
                               {"server", one.server},
                               {"from_ms", one.from.time_since_epoch().count()},
                               {"to_ms", one.to.time_since_epoch().count()}});
  }
  for (const Job& job : launch.jobs) {
    record["jobs"].push_back(record_json(job));
  }
  return record;
}

PastLaunch launch_record_of(const Json& json) {
  FieldReader fields(json);
  PastLaunch launch;
  visit_fields<LaunchSummary>(launch, fields);
  visit_details(launch, fields);
  if (launch.commit.find_first_not_of("0123456789abcdef") != std::string::npos) {
    launch.commit.clear();  // it is not a commit of git
  }
  launch.news = json.value("news", "");  // older versions did not notify anyone
  launch.patch = json.at("patch").is_string() ? "changes.patch" : "";
  const auto moment = [](const Json& value) {
    return ExactInstant(std::chrono::milliseconds(value.is_number_integer() ? value.get<std::int64_t>() : 0));
  };
  for (const Json& one : list_of(json, "setups")) {
    const double ahead = one.at("clock_ahead");
    launch.beginning.servers.push_back({.server = one.at("server"),
                                        .facts = one.at("facts"),
                                        .clock_ahead = std::chrono::duration<double>(
                                            std::isfinite(ahead) ? std::clamp(ahead, -1e9, 1e9) : 0)});
  }
  for (const Json& one : list_of(json, "steps")) {
    launch.beginning.steps.push_back(
        {one.at("name"), one.at("server"), moment(one.at("from_ms")), moment(one.at("to_ms"))});
  }
  for (const Json& one : list_of(json, "jobs")) {
    launch.jobs.push_back(job_record_of(one));
  }
  if (const auto request = json.find("request"); request != json.end() && request->is_object()) {
    take_json(*request, launch.request.emplace(), launch.secrets);
    launch.request->command = launch.command;
    launch.request->launcher = launch.beginning.launcher;
  }
  return launch;
}

}  // namespace remote::jobs
