#include "jobs/job_json.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/error.hpp>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "jobs/job_fields.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/launch_request_json.hpp"

namespace remote::jobs {
namespace {

using Json = nlohmann::ordered_json;

constexpr int record_version = 1;

// What a field has in JSON; what is not known is null.
template <typename Value>
Json json_of(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return to_string(value);
  } else {
    return value;
  }
}
Json json_of(const Instant& instant) {
  return format_utc(instant);
}
Json json_of(const JobId& id) {
  return id.text();
}
Json json_of(const JobReason::Kind& kind) {
  return kind_name(kind);
}
template <typename Value>
Json json_of(const std::optional<Value>& value);
Json json_of(const Hung& hung) {
  return Json{
      {"at", json_of(hung.at)}, {"seconds", hung.stood.count()}, {"moved_at", json_of(hung.moved_at)}};
}
Json json_of(const std::vector<NamedNumber>& numbers) {
  Json all = Json::object();
  for (const NamedNumber& number : numbers) {
    all[number.name] = number.value;
  }
  return all;
}
template <typename Value>
Json json_of(const std::optional<Value>& value) {
  return value ? json_of(*value) : Json(nullptr);
}

// Puts fields into an object.
class Writer {
 public:
  Writer(Json& object, bool for_record) : object_(object), for_record_(for_record) {}

  template <typename Value>
  void field(const char* name, const Value& value, int /*low*/ = 0) {
    object_[name] = json_of(value);
  }
  void result(const std::optional<ExitStatus>& value) {
    field("exit_code", value ? value->code() : std::nullopt);
    const auto signal = value ? value->signal() : std::nullopt;
    field("signal", signal ? std::optional(signal_name(*signal)) : std::nullopt);
  }
  void reason(const char* name, const JobReason& value) {
    field(name, reason_text(value));
    if (for_record_ && value.kind != JobReason::Kind::none) {
      Json why = Json::object();
      Writer fields(why, for_record_);
      visit_fields_of_reason(value, fields);
      object_["why"] = why;
    }
  }
  void usage(const char* name, const std::optional<JobUsage>& value) {
    Json& mine = object_[name] = nullptr;
    if (value && (for_record_ || value->cpus > 0)) {
      mine = Json::object();
      Writer fields(mine, for_record_);
      visit_fields_of_usage(*value, fields);
    }
  }
  void attempts(const char* name, const std::vector<Attempt>& all) {
    if (for_record_ && all.empty()) {
      return;
    }
    Json& list = object_[name] = Json::array();
    for (const Attempt& attempt : all) {
      Writer fields(list.emplace_back(Json::object()), for_record_);
      visit_fields_of_attempt(attempt, fields);
    }
  }
  void milliseconds(const char* name, const std::optional<ExactInstant>& value) {
    if (for_record_ && value) {
      object_[name] = value->time_since_epoch().count();
    }
  }
  void mark(const char* name, bool value) {
    if (for_record_ && value) {
      object_[name] = value;
    }
  }
  void folder(const char* name, const Job& job) { field(name, job_folder_text(job)); }
  void values(const char* name, const std::vector<std::pair<std::string, std::string>>& values) {
    Json& all = object_[name] = Json::object();
    for (const auto& [parameter, value] : values) {
      all[parameter] = value;
    }
  }
  // Only a sweep's jobs have it.
  void point(const char* name, const std::optional<SweepPoint>& value) {
    if (value) {
      Json mine = Json::object();
      Writer fields(mine, for_record_);
      visit_fields_of_point(*value, fields);
      object_[name] = std::move(mine);
    }
  }

 private:
  Json& object_;
  bool for_record_;
};

Error wrong(const std::string& reason) {
  return Error("not a job record", reason);
}

// Of "<project>/<jobs_folder>/<id>".
RemoteFolder parse_folder(std::string_view text, const JobId& id) {
  const std::string end = "/" + id.text();
  if (text.ends_with(end)) {
    text.remove_suffix(end.size());
    const std::size_t slash = text.rfind('/');
    if (slash != std::string_view::npos && slash > 0 && slash + 1 < text.size()) {
      return {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
    }
  }
  throw wrong("'remote_folder' is not the folder of this job");
}

// Takes fields out of an object; every complaint names the field. A field that may be unknown may be absent
// or null; so may one that older programs did not write: a flag is then false, a list empty.
class Reader {
 public:
  explicit Reader(const Json& object) : object_(object) {}

  template <typename Value>
  void field(const char* name, std::optional<Value>& value, int low = 0) const {
    if (const Json* found = find(name)) {
      take(*found, value.emplace(), name, low);
    }
  }
  template <typename Value>
  void field(const char* name, Value& value, int low = 0) const {
    if (const Json* found = find(name)) {
      take(*found, value, name, low);
    } else if (!std::is_same_v<Value, bool> && !std::is_same_v<Value, std::vector<std::string>>) {
      throw wrong(fmt::format("'{}' is missing", name));
    }
  }
  void result(std::optional<ExitStatus>& value) const {
    std::optional<int> code;
    std::optional<std::string> signal;
    field("exit_code", code);
    field("signal", signal);
    if (code && signal) {
      throw wrong("it has both 'exit_code' and 'signal'");
    }
    if (code) {
      value = ExitStatus::exited(*code);
    } else if (signal) {
      const auto number = signal_number(*signal);
      if (!number) {
        throw wrong("'signal' is not the name of a signal");
      }
      value = ExitStatus::signalled(*number);
    }
  }
  // A newer program may know more kinds: then the text alone can be used.
  void reason(const char* name, JobReason& value) const {
    const Json* why = find("why");
    if (why != nullptr && why->is_object() && parse_kind(why->value("kind", ""))) {
      Reader fields(*why);
      visit_fields_of_reason(value, fields);
    } else {
      std::optional<std::string> text;
      field(name, text);
      value = {.kind = text.value_or("").empty() ? JobReason::Kind::none : JobReason::Kind::other,
               .text = text.value_or("")};
    }
  }
  void usage(const char* name, std::optional<JobUsage>& value) const {
    if (const Json* found = find(name); found != nullptr && found->is_object()) {
      Reader fields(*found);
      visit_fields_of_usage(value.emplace(), fields);
    }
  }
  void attempts(const char* name, std::vector<Attempt>& all) const {
    const Json* found = find(name);
    if (found == nullptr || !found->is_array()) {
      return;
    }
    for (const Json& one : *found) {
      if (!one.is_object()) {
        throw wrong(fmt::format("'{}' has what is no attempt", name));
      }
      Reader fields(one);
      visit_fields_of_attempt(all.emplace_back(), fields);
    }
  }
  void milliseconds(const char* name, std::optional<ExactInstant>& value) const {
    constexpr std::chrono::milliseconds latest = year_10000.time_since_epoch();
    if (const Json* found = find(name)) {
      if (!found->is_number_integer() || *found < 0 || *found > latest.count()) {
        throw wrong(fmt::format("'{}' is no number of milliseconds", name));
      }
      value = ExactInstant(std::chrono::milliseconds(found->get<std::int64_t>()));
    }
  }
  void mark(const char* name, bool& value) const { field(name, value); }
  void folder(const char* name, Job& job) const {
    std::string text;
    field(name, text);
    job.remote_folder = parse_folder(text, job.id);
  }
  void values(const char* name, std::vector<std::pair<std::string, std::string>>& values) const {
    const Json* found = find(name);
    if (found == nullptr || !found->is_object()) {
      throw wrong(fmt::format("'{}' is no object", name));
    }
    for (const auto& [parameter, value] : found->items()) {
      take(value, values.emplace_back(parameter, "").second, name);
    }
  }
  void point(const char* name, std::optional<SweepPoint>& value) const {
    if (const Json* found = find(name); found != nullptr && found->is_object()) {
      Reader fields(*found);
      visit_fields_of_point(value.emplace(), fields);
    }
  }

 private:
  // nullptr when the field is absent or null.
  const Json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  template <typename Value>
  static void set(Value& value, std::optional<Value> found, const char* name, std::string_view otherwise) {
    if (!found) {
      throw wrong(fmt::format("'{}' {}", name, otherwise));
    }
    value = *std::move(found);
  }
  static std::string text_of(const Json& json, const char* name) {
    std::string text;
    take(json, text, name);
    return text;
  }

  static void take(const Json& json, int& value, const char* name, int low) {
    if (!json.is_number_integer() || json < low || json > std::numeric_limits<int>::max()) {
      throw wrong(fmt::format("'{}' is not a whole number from {} up", name, low));
    }
    value = json.get<int>();
  }
  // A flag, a text, or a list of texts.
  template <typename Value>
  static void take(const Json& json, Value& value, const char* name, int /*low*/ = 0) {
    try {
      value = json.get<Value>();
    } catch (const Json::exception&) {
      throw wrong(fmt::format("'{}' is of the wrong type", name));
    }
  }
  static void take(const Json& json, JobId& value, const char* name, int /*low*/) {
    set(value, JobId::parse(text_of(json, name)), name, "is not 32 hexadecimal digits");
  }
  static void take(const Json& json, JobState& value, const char* name, int /*low*/) {
    set(value, parse_job_state(text_of(json, name)), name, "is not the name of a state");
  }
  static void take(const Json& json, JobReason::Kind& value, const char* name, int /*low*/) {
    set(value, parse_kind(text_of(json, name)), name, "is not the name of a reason");
  }
  static void take(const Json& json, RestartCause& value, const char* name, int /*low*/) {
    set(value, parse_restart_cause(text_of(json, name)), name, "is not the name of a cause");
  }
  static void take(const Json& json, Launcher& value, const char* name, int /*low*/) {
    set(value, parse_launcher(text_of(json, name)), name, "is not the name of a launcher");
  }
  static void take(const Json& json, Instant& value, const char* name, int /*low*/) {
    set(value, parse_utc(text_of(json, name)), name, "is not an instant such as 2026-11-21T07:30:00Z");
  }

  static void take(const Json& json, Hung& hung, const char* name, int /*low*/) {
    if (!json.is_object()) {
      throw wrong(fmt::format("'{}' is of the wrong type", name));
    }
    const Reader fields(json);
    fields.field("at", hung.at);
    int seconds = 0;
    fields.field("seconds", seconds);
    hung.stood = std::chrono::seconds(seconds);
    fields.field("moved_at", hung.moved_at);
  }

  static void take(const Json& json, std::vector<NamedNumber>& numbers, const char* name, int /*low*/) {
    for (const auto& [word, value] : json.items()) {
      take(value, numbers.emplace_back(NamedNumber{word}).value, name);
    }
  }

  const Json& object_;
};

Job read_job(const Json& object) {
  if (!object.is_object()) {
    throw wrong("it is JSON, but not an object");
  }
  Reader fields(object);
  int version = 0;
  fields.field("version", version, 1);
  if (version > record_version) {
    throw Error("not a job record", fmt::format("it has version {}, from a newer program", version),
                "use the newer version of remote for this project");
  }
  Job job;
  visit_fields(job, fields);
  return job;
}

// What a list of launches has not.
template <typename AnyLaunch, typename Visitor>
void visit_details(AnyLaunch& launch, Visitor& visit) {
  visit.field("launcher", launch.beginning.launcher);
  visit.field("variables", launch.variables);
  visit.field("remote", launch.version);
  visit.field("branch", launch.branch);
  visit.field("untracked", launch.untracked, 0);
  visit.field("last_lines", launch.last_lines);
  visit.field("changed", launch.changed);
}

constexpr std::size_t most_entries = 65536;  // of a list in the record of a launch

const Json& list_of(const Json& record, const char* name) {
  const Json& list = record.at(name);
  if (!list.is_array() || list.size() > most_entries) {
    throw wrong(fmt::format("'{}' is no list, or too long", name));
  }
  return list;
}

}  // namespace

Json attempts_json(const std::vector<Attempt>& attempts) {
  Json object = Json::object();
  Writer(object, false).attempts("attempts", attempts);
  return object["attempts"];
}

Json to_json(const Job& job) {
  Json object = Json::object();
  Writer fields(object, false);
  visit_fields(job, fields);
  const bool writes = job.state == JobState::running && job.failed_at;  // see transitions.hpp
  Json& waits = object["waiting"] = Json::array();
  for (const DebuggerWait& wait : job.waits) {
    const Json error = wait.error.empty() ? Json(nullptr) : Json(wait.error);
    waits.push_back(Json{{"id", wait.id},
                         {"rank", json_of(wait.rank)},
                         {"file", wait.file},
                         {"line", wait.line},
                         {"error", error}});
  }
  object["spare"] = job.spare;
  object["last_output_at"] = json_of(
      writes ? std::optional(std::chrono::floor<std::chrono::seconds>(*job.failed_at)) : std::nullopt);
  return object;
}

nlohmann::ordered_json record_json(const Job& job) {
  Json record{{"version", record_version}};
  Writer fields(record, true);
  visit_fields(job, fields);
  return record;
}

std::string to_json_text(const Job& job) {
  return dump_json(record_json(job));
}

Json to_json(const LaunchSummary& launch) {
  Json object = Json::object();
  Writer fields(object, true);
  visit_fields(launch, fields);
  return object;
}

Json to_json(const PastLaunch& launch) {
  Json record{{"version", launch_record_version}};
  Writer fields(record, true);
  visit_fields<const LaunchSummary>(launch, fields);
  visit_details(launch, fields);
  record["news"] = launch.news;
  record["patch"] = launch.patch.empty() ? Json(nullptr) : Json(launch.patch.string());
  record["request"] = launch.request ? to_json(*launch.request, launch.secrets) : Json(nullptr);
  for (const char* list : {"setups", "steps", "jobs"}) {
    record[list] = Json::array();
  }
  for (const ServerSetup& one : launch.beginning.servers) {  // facts as an array: their order counts
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
  Reader fields(json);
  PastLaunch launch;
  visit_fields<LaunchSummary>(launch, fields);
  visit_details(launch, fields);
  if (launch.commit.find_first_not_of("0123456789abcdef") != std::string::npos) {
    launch.commit.clear();  // not git's
  }
  launch.news = json.value("news", "");  // an older version told nobody
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
    launch.jobs.push_back(read_job(one));
  }
  if (const auto request = json.find("request"); request != json.end() && request->is_object()) {
    take_json(*request, launch.request.emplace(), launch.secrets);
    launch.request->command = launch.command;
    launch.request->launcher = launch.beginning.launcher;
  }
  return launch;
}

Job from_json_text(const std::string& text) {
  try {
    return read_job(Json::parse(text));
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(
        "not a job record",
        text.empty() ? "it is empty" : fmt::format("it is cut short or not JSON (at byte {})", error.byte));
  } catch (const nlohmann::json::exception& error) {
    throw Error("not a job record", error.what());
  }
}

}  // namespace remote::jobs
