#include "jobs/job_json.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/error.hpp>

#include "base/json.hpp"
#include "jobs/json_fields.hpp"

namespace remote::jobs {

static constexpr int record_version = 1;

Json attempts_json(const std::vector<Attempt>& attempts) {
  Json object = Json::object();
  FieldWriter(object, false).attempts("attempts", attempts);
  return object["attempts"];
}

Json to_json(const Job& job) {
  Json object = Json::object();
  FieldWriter fields(object, false);
  visit_fields(job, fields);
  const bool writes =
      job.state == JobState::running && job.failed_at && !job.wrote_nothing;  // see transitions.hpp
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
  FieldWriter fields(record, true);
  visit_fields(job, fields);
  return record;
}

std::string to_json_text(const Job& job) {
  return dump_json(record_json(job));
}

Job job_record_of(const Json& object) {
  if (!object.is_object()) {
    throw not_a_record("it is JSON, but not an object");
  }
  FieldReader fields(object);
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

Job from_json_text(const std::string& text) {
  try {
    return job_record_of(Json::parse(text));
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(
        "not a job record",
        text.empty() ? "it is empty" : fmt::format("it is cut short or not JSON (at byte {})", error.byte));
  } catch (const nlohmann::json::exception& error) {
    throw Error("not a job record", error.what());
  }
}

}  // namespace remote::jobs
