#include "jobs/job_json.hpp"

#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/error.hpp>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "jobs/remote_folder.hpp"

namespace remote::jobs {
namespace {

using Json = nlohmann::ordered_json;

constexpr int record_version = 1;
constexpr std::int64_t latest_ms = 253402300800000;  // the year 10000

Json time_or_null(const std::optional<std::int64_t>& seconds) {
  return seconds ? Json(format_utc(*seconds)) : Json(nullptr);
}

template <typename Value>
Json value_or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Error wrong(const std::string& reason) {
  return Error("not a job record", reason);
}

// Reads the fields of one object; every complaint names the field.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  // nullptr when the field is absent or null.
  const Json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  std::optional<std::string> text(const char* name) const {
    const Json* value = find(name);
    if (value == nullptr) {
      return std::nullopt;
    }
    if (!value->is_string()) {
      throw wrong(fmt::format("'{}' is not a text", name));
    }
    return value->get<std::string>();
  }

  std::optional<JobId> id(const char* name) const {
    const auto value = text(name);
    const auto id = JobId::parse(value.value_or(""));
    if (value && !id) {
      throw wrong(fmt::format("'{}' is not 32 hexadecimal digits", name));
    }
    return id;
  }

  std::optional<int> number(const char* name, int low) const {
    const Json* value = find(name);
    if (value == nullptr) {
      return std::nullopt;
    }
    if (!value->is_number_integer() || *value < low || *value > std::numeric_limits<int>::max()) {
      throw wrong(fmt::format("'{}' is not a whole number from {} up", name, low));
    }
    return value->get<int>();
  }

  std::optional<std::int64_t> time(const char* name) const {
    const auto value = text(name);
    if (!value) {
      return std::nullopt;
    }
    const auto seconds = parse_utc(*value);
    if (!seconds) {
      throw wrong(fmt::format("'{}' is not an instant such as 2026-11-21T07:30:00Z", name));
    }
    return seconds;
  }

  std::optional<std::int64_t> milliseconds(const char* name) const {
    const Json* value = find(name);
    if (value == nullptr) {
      return std::nullopt;
    }
    if (!value->is_number_integer() || *value < 0 || *value > latest_ms) {
      throw wrong(fmt::format("'{}' is no number of milliseconds", name));
    }
    return value->get<std::int64_t>();
  }

  template <typename Value>
  static Value needed(const char* name, std::optional<Value> value) {
    if (!value) {
      throw wrong(fmt::format("'{}' is missing", name));
    }
    return std::move(*value);
  }

 private:
  const Json& object_;
};

std::optional<ExitStatus> read_result(const Fields& fields) {
  const auto code = fields.number("exit_code", 0);
  const Json* signal = fields.find("signal");
  if (code && signal != nullptr) {
    throw wrong("it has both 'exit_code' and 'signal'");
  }
  if (code) {
    return ExitStatus::exited(*code);
  }
  if (signal == nullptr) {
    return std::nullopt;
  }
  const auto number =
      signal->is_string() ? signal_number(signal->get<std::string>()) : fields.number("signal", 1);
  if (!number) {
    throw wrong("'signal' is not the name of a signal");
  }
  return ExitStatus::signalled(*number);
}

std::vector<std::string> read_tags(const Fields& fields) {
  std::vector<std::string> tags;
  const Json* list = fields.find("tags");
  if (list == nullptr) {
    return tags;
  }
  if (!list->is_array()) {
    throw wrong("'tags' is not a list");
  }
  for (const Json& tag : *list) {
    if (!tag.is_string()) {
      throw wrong("'tags' holds something that is not a text");
    }
    tags.push_back(tag.get<std::string>());
  }
  return tags;
}

// Of "<project>/<jobs_folder>/<id>".
RemoteFolder read_folder(std::string_view text, const JobId& id) {
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

Job read_job(const Json& object) {
  if (!object.is_object()) {
    throw wrong("it is JSON, but not an object");
  }
  const Fields fields(object);
  const int version = Fields::needed("version", fields.number("version", 1));
  if (version > record_version) {
    throw Error("not a job record", fmt::format("it has version {}, from a newer program", version),
                "use the newer version of remote for this project");
  }
  Job job;
  job.key = Fields::needed("key", fields.number("key", 1));
  job.id = Fields::needed("id", fields.id("id"));
  job.server = Fields::needed("server", fields.text("server"));
  const auto state = parse_job_state(Fields::needed("state", fields.text("state")));
  if (!state) {
    throw wrong("'state' is not the name of a state");
  }
  job.state = *state;
  job.pid = fields.number("pid", 1);
  job.result = read_result(fields);
  job.reason = fields.text("reason").value_or("");
  job.tags = read_tags(fields);
  job.command = fields.text("command").value_or("");
  job.launch = fields.id("launch");
  job.rank = fields.number("rank", 0);
  job.world_size = fields.number("world_size", 1);
  job.created_at = Fields::needed("created_at", fields.time("created_at"));
  job.started_at = fields.time("started_at");
  job.ended_at = fields.time("ended_at");
  job.checked_at = fields.time("checked_at");
  job.failed_ms = fields.milliseconds("failed_at_ms");
  if (const Json* hidden = fields.find("hidden"); hidden != nullptr) {
    if (!hidden->is_boolean()) {
      throw wrong("'hidden' is neither true nor false");
    }
    job.hidden = hidden->get<bool>();
  }
  job.remote_folder = read_folder(Fields::needed("remote_folder", fields.text("remote_folder")), job.id);
  return job;
}

}  // namespace

Json to_json(const Job& job) {
  const auto code = job.result ? job.result->code() : std::nullopt;
  const auto signal = job.result ? job.result->signal() : std::nullopt;
  return {
      {"key", job.key},
      {"id", job.id.text()},
      {"server", job.server},
      {"state", to_string(job.state)},
      {"pid", value_or_null(job.pid)},
      {"exit_code", value_or_null(code)},
      {"signal", signal ? Json(signal_name(*signal)) : Json(nullptr)},
      {"reason", job.reason},
      {"tags", job.tags},
      {"command", job.command},
      {"launch", job.launch ? Json(job.launch->text()) : Json(nullptr)},
      {"rank", value_or_null(job.rank)},
      {"world_size", value_or_null(job.world_size)},
      {"created_at", format_utc(job.created_at)},
      {"started_at", time_or_null(job.started_at)},
      {"ended_at", time_or_null(job.ended_at)},
      {"checked_at", time_or_null(job.checked_at)},
      {"hidden", job.hidden},
      {"remote_folder", job_folder_text(job)},
  };
}

std::string to_json_text(const Job& job) {
  Json record{{"version", record_version}};
  record.update(to_json(job));
  if (job.failed_ms) {
    record["failed_at_ms"] = *job.failed_ms;
  }
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
