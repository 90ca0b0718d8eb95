#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/error.hpp>

#include "base/clock.hpp"
#include "jobs/job_fields.hpp"
#include "jobs/job_json.hpp"
#include "jobs/job_servers.hpp"

// The fields of jobs and launches (job_fields.hpp) as JSON.

namespace remote::jobs {

using Json = nlohmann::ordered_json;

// Converts a field to JSON; unknown values become null.
template <typename Value>
Json json_of(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return to_string(value);
  } else {
    return value;
  }
}
inline Json json_of(const Instant& instant) {
  return format_utc(instant);
}
inline Json json_of(const JobId& id) {
  return id.text();
}
inline Json json_of(const JobReason::Kind& kind) {
  return kind_name(kind);
}
template <typename Value>
Json json_of(const std::optional<Value>& value);
inline Json json_of(const Hung& hung) {
  return Json{
      {"at", json_of(hung.at)}, {"seconds", hung.stood.count()}, {"moved_at", json_of(hung.moved_at)}};
}
inline Json json_of(const std::vector<NamedNumber>& numbers) {
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

// A visitor of job_fields.hpp that writes fields to an object. `for_record`: for a file, not for the output
// of commands.
class FieldWriter {
 public:
  FieldWriter(Json& object, bool for_record) : object_(object), for_record_(for_record) {}

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
      FieldWriter fields(why, for_record_);
      visit_fields_of_reason(value, fields);
      object_["why"] = why;
    }
  }
  void usage(const char* name, const std::optional<JobUsage>& value) {
    Json& mine = object_[name] = nullptr;
    if (value && (for_record_ || value->cpus > 0)) {
      mine = Json::object();
      FieldWriter fields(mine, for_record_);
      visit_fields_of_usage(*value, fields);
    }
  }
  void attempts(const char* name, const std::vector<Attempt>& all) {
    if (for_record_ && all.empty()) {
      return;
    }
    Json& list = object_[name] = Json::array();
    for (const Attempt& attempt : all) {
      FieldWriter fields(list.emplace_back(Json::object()), for_record_);
      visit_fields_of_attempt(attempt, fields);
    }
  }
  void no_restart(const char* name, const std::optional<NoRestart>& value) {
    if (for_record_ && value) {
      field(name, value);
    }
  }
  void recorded(const char* name, const auto& value) {
    if (for_record_ && value) {
      field(name, value);
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
  // Only the jobs of a sweep have it.
  void point(const char* name, const std::optional<SweepPoint>& value) {
    if (value) {
      Json mine = Json::object();
      FieldWriter fields(mine, for_record_);
      visit_fields_of_point(*value, fields);
      object_[name] = std::move(mine);
    }
  }

 private:
  Json& object_;
  bool for_record_;
};

inline Error not_a_record(const std::string& reason) {
  return Error("not a job record", reason);
}

// Parses "<project>/<jobs_folder>/<id>".
inline RemoteFolder parse_folder(std::string_view text, const JobId& id) {
  const std::string end = "/" + id.text();
  if (text.ends_with(end)) {
    text.remove_suffix(end.size());
    const std::size_t slash = text.rfind('/');
    if (slash != std::string_view::npos && slash > 0 && slash + 1 < text.size()) {
      return {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
    }
  }
  throw not_a_record("'remote_folder' is not the folder of this job");
}

// A visitor that reads fields from an object; errors name the field. Fields that may be unknown may be absent
// or null. So may fields that older versions did not write: then a flag is false and a list is empty.
class FieldReader {
 public:
  explicit FieldReader(const Json& object) : object_(object) {}

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
      throw not_a_record(fmt::format("'{}' is missing", name));
    }
  }
  void result(std::optional<ExitStatus>& value) const {
    std::optional<int> code;
    std::optional<std::string> signal;
    field("exit_code", code);
    field("signal", signal);
    if (code && signal) {
      throw not_a_record("it has both 'exit_code' and 'signal'");
    }
    if (code) {
      value = ExitStatus::exited(*code);
    } else if (signal) {
      const auto number = signal_number(*signal);
      if (!number) {
        throw not_a_record("'signal' is not the name of a signal");
      }
      value = ExitStatus::signalled(*number);
    }
  }
  // If a newer version has written an unknown kind, only the text is used.
  void reason(const char* name, JobReason& value) const {
    const Json* why = find("why");
    if (why != nullptr && why->is_object() && parse_kind(why->value("kind", ""))) {
      FieldReader fields(*why);
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
      FieldReader fields(*found);
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
        throw not_a_record(fmt::format("'{}' has an item that is not an attempt", name));
      }
      FieldReader fields(one);
      visit_fields_of_attempt(all.emplace_back(), fields);
    }
  }
  void no_restart(const char* name, std::optional<NoRestart>& value) const { field(name, value); }
  void milliseconds(const char* name, std::optional<ExactInstant>& value) const {
    constexpr std::chrono::milliseconds latest = year_10000.time_since_epoch();
    if (const Json* found = find(name)) {
      if (!found->is_number_integer() || *found < 0 || *found > latest.count()) {
        throw not_a_record(fmt::format("'{}' is not a number of milliseconds", name));
      }
      value = ExactInstant(std::chrono::milliseconds(found->get<std::int64_t>()));
    }
  }
  void recorded(const char* name, auto& value) const { field(name, value); }
  void mark(const char* name, bool& value) const { field(name, value); }
  void folder(const char* name, Job& job) const {
    std::string text;
    field(name, text);
    job.remote_folder = parse_folder(text, job.id);
  }
  void values(const char* name, std::vector<std::pair<std::string, std::string>>& values) const {
    const Json* found = find(name);
    if (found == nullptr || !found->is_object()) {
      throw not_a_record(fmt::format("'{}' is not an object", name));
    }
    for (const auto& [parameter, value] : found->items()) {
      take(value, values.emplace_back(parameter, "").second, name);
    }
  }
  void point(const char* name, std::optional<SweepPoint>& value) const {
    if (const Json* found = find(name); found != nullptr && found->is_object()) {
      FieldReader fields(*found);
      visit_fields_of_point(value.emplace(), fields);
    }
  }

 private:
  // nullptr if the field is absent or null.
  const Json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  template <typename Value>
  static void set(Value& value, std::optional<Value> found, const char* name, std::string_view otherwise) {
    if (!found) {
      throw not_a_record(fmt::format("'{}' {}", name, otherwise));
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
      throw not_a_record(fmt::format("'{}' is not a whole number from {} up", name, low));
    }
    value = json.get<int>();
  }
  // Reads a flag, a text, or a list of texts.
  template <typename Value>
  static void take(const Json& json, Value& value, const char* name, int /*low*/ = 0) {
    try {
      value = json.get<Value>();
    } catch (const Json::exception&) {
      throw not_a_record(fmt::format("'{}' is of the wrong type", name));
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
  static void take(const Json& json, NoRestart& value, const char* name, int /*low*/) {
    set(value, parse_no_restart(text_of(json, name)), name, "is not a reason against a restart");
  }
  static void take(const Json& json, Launcher& value, const char* name, int /*low*/) {
    set(value, parse_launcher(text_of(json, name)), name, "is not the name of a launcher");
  }
  static void take(const Json& json, Instant& value, const char* name, int /*low*/) {
    set(value, parse_utc(text_of(json, name)), name, "is not an instant such as 2026-11-21T07:30:00Z");
  }

  static void take(const Json& json, Hung& hung, const char* name, int /*low*/) {
    if (!json.is_object()) {
      throw not_a_record(fmt::format("'{}' is of the wrong type", name));
    }
    const FieldReader fields(json);
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

}  // namespace remote::jobs
