#include "jobs/job_json.hpp"

#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/error.hpp>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "jobs/job_fields.hpp"
#include "jobs/reason_text.hpp"
#include "jobs/remote_folder.hpp"

namespace remote::jobs {
namespace {

using Json = nlohmann::ordered_json;

constexpr int record_version = 1;
constexpr std::int64_t latest_ms = 253402300800000;  // the year 10000

// Puts fields into an object; what is not known is null.
class Writer {
 public:
  Writer(Json& object, bool for_record) : object_(object), for_record_(for_record) {}

  template <typename Number>
  void number(const char* name, const Number& value, int /*low*/) {
    put(name, value);
  }
  void id(const char* name, const JobId& value) { put(name, value.text()); }
  void id(const char* name, const std::optional<JobId>& value) {
    put(name, value ? std::optional(value->text()) : std::nullopt);
  }
  void text(const char* name, const std::string& value) { put(name, value); }
  void texts(const char* name, const std::vector<std::string>& values) { put(name, values); }
  void flag(const char* name, bool value) { put(name, value); }
  void state(const char* name, JobState value) { put(name, to_string(value)); }
  void kind(const char* name, JobReason::Kind value) { put(name, kind_name(value)); }
  void result(const std::optional<ExitStatus>& value) {
    put("exit_code", value ? value->code() : std::nullopt);
    const auto signal = value ? value->signal() : std::nullopt;
    put("signal", signal ? std::optional(signal_name(*signal)) : std::nullopt);
  }
  void reason(const char* name, const JobReason& value) {
    put(name, reason_text(value));
    if (for_record_ && value.kind != JobReason::Kind::none) {
      Json why = Json::object();
      Writer fields(why, for_record_);
      visit_fields_of_reason(value, fields);
      put("why", why);
    }
  }
  void time(const char* name, const std::optional<std::int64_t>& seconds) {
    put(name, seconds ? std::optional(format_utc(*seconds)) : std::nullopt);
  }
  void milliseconds(const char* name, const std::optional<std::int64_t>& value) {
    if (for_record_ && value) {
      put(name, *value);
    }
  }
  void folder(const char* name, const RemoteFolder& /*folder*/, const Job& job) {
    put(name, job_folder_text(job));
  }

 private:
  template <typename Value>
  void put(const char* name, const Value& value) {
    object_[name] = value;
  }
  template <typename Value>
  void put(const char* name, const std::optional<Value>& value) {
    object_[name] = value ? Json(*value) : Json(nullptr);
  }

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

// Takes fields out of an object; every complaint names the field. A field that may be absent may be null.
class Reader {
 public:
  explicit Reader(const Json& object) : object_(object) {}

  void number(const char* name, std::optional<int>& value, int low) const {
    if (const Json* found = find(name)) {
      if (!found->is_number_integer() || *found < low || *found > std::numeric_limits<int>::max()) {
        throw wrong(fmt::format("'{}' is not a whole number from {} up", name, low));
      }
      value = found->get<int>();
    }
  }
  void number(const char* name, int& value, int low) const {
    std::optional<int> found;
    number(name, found, low);
    value = needed(name, found);
  }
  void text(const char* name, std::string& value) const { value = needed(name, maybe_text(name)); }
  void texts(const char* name, std::vector<std::string>& values) const {
    const Json* list = find(name);
    if (list == nullptr) {
      return;
    }
    if (!list->is_array()) {
      throw wrong(fmt::format("'{}' is not a list", name));
    }
    for (const Json& one : *list) {
      if (!one.is_string()) {
        throw wrong(fmt::format("'{}' holds something that is not a text", name));
      }
      values.push_back(one.get<std::string>());
    }
  }
  void flag(const char* name, bool& value) const {
    if (const Json* found = find(name)) {
      if (!found->is_boolean()) {
        throw wrong(fmt::format("'{}' is neither true nor false", name));
      }
      value = found->get<bool>();
    }
  }
  void id(const char* name, std::optional<JobId>& value) const {
    if (const auto text = maybe_text(name)) {
      value = JobId::parse(*text);
      if (!value) {
        throw wrong(fmt::format("'{}' is not 32 hexadecimal digits", name));
      }
    }
  }
  void id(const char* name, JobId& value) const {
    std::optional<JobId> found;
    id(name, found);
    value = needed(name, found);
  }
  void state(const char* name, JobState& value) const {
    const auto state = parse_job_state(needed(name, maybe_text(name)));
    if (!state) {
      throw wrong(fmt::format("'{}' is not the name of a state", name));
    }
    value = *state;
  }
  void kind(const char* name, JobReason::Kind& value) const {
    value = needed(name, parse_kind(needed(name, maybe_text(name))));
  }
  void result(std::optional<ExitStatus>& value) const {
    std::optional<int> code;
    number("exit_code", code, 0);
    const auto signal = maybe_text("signal");
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
  // A record of an older program has the text alone. So has, for this program, one of a newer program that
  // knows more kinds.
  void reason(const char* name, JobReason& value) const {
    const Json* why = find("why");
    if (why != nullptr && why->is_object() && parse_kind(why->value("kind", ""))) {
      Reader fields(*why);
      visit_fields_of_reason(value, fields);
    } else {
      value = parse_reason(maybe_text(name).value_or(""));
    }
  }
  void time(const char* name, std::optional<std::int64_t>& value) const {
    if (const auto text = maybe_text(name)) {
      value = parse_utc(*text);
      if (!value) {
        throw wrong(fmt::format("'{}' is not an instant such as 2026-11-21T07:30:00Z", name));
      }
    }
  }
  void time(const char* name, std::int64_t& value) const {
    std::optional<std::int64_t> found;
    time(name, found);
    value = needed(name, found);
  }
  void milliseconds(const char* name, std::optional<std::int64_t>& value) const {
    if (const Json* found = find(name)) {
      if (!found->is_number_integer() || *found < 0 || *found > latest_ms) {
        throw wrong(fmt::format("'{}' is no number of milliseconds", name));
      }
      value = found->get<std::int64_t>();
    }
  }
  void folder(const char* name, RemoteFolder& value, const Job& job) const {
    value = parse_folder(needed(name, maybe_text(name)), job.id);
  }

 private:
  // nullptr when the field is absent or null.
  const Json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::optional<std::string> maybe_text(const char* name) const {
    const Json* value = find(name);
    if (value == nullptr) {
      return std::nullopt;
    }
    if (!value->is_string()) {
      throw wrong(fmt::format("'{}' is not a text", name));
    }
    return value->get<std::string>();
  }
  template <typename Value>
  static Value needed(const char* name, std::optional<Value> value) {
    if (!value) {
      throw wrong(fmt::format("'{}' is missing", name));
    }
    return std::move(*value);
  }

  const Json& object_;
};

void write_fields(Json& object, const Job& job, bool for_record) {
  Writer fields(object, for_record);
  visit_fields(job, fields);
}

Job read_job(const Json& object) {
  if (!object.is_object()) {
    throw wrong("it is JSON, but not an object");
  }
  Reader fields(object);
  int version = 0;
  fields.number("version", version, 1);
  if (version > record_version) {
    throw Error("not a job record", fmt::format("it has version {}, from a newer program", version),
                "use the newer version of remote for this project");
  }
  Job job;
  visit_fields(job, fields);
  return job;
}

}  // namespace

Json to_json(const Job& job) {
  Json object = Json::object();
  write_fields(object, job, false);
  return object;
}

std::string to_json_text(const Job& job) {
  Json record{{"version", record_version}};
  write_fields(record, job, true);
  return dump_json(record);
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
