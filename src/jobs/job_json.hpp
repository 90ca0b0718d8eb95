#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>
#include <remote/history.hpp>

// Jobs and launches as JSON: the text of job.json, and elements of `job-list --json`.

namespace remote::jobs {

// The sentence for a job's reason, used in listings and next to the typed reason in job.json: "ended after
// rank 2", "SIGTERM by ada@laptop, exit 1"; "" if there is none. May quote a server's text, so print it with
// visible_text().
std::string reason_text(const JobReason& reason);

// The fields of `job-list --json`, in the documented order. Times are "2026-11-21T07:30:00Z", `signal` is a
// name ("SIGTERM"), `reason` is a sentence; unknown values are null.
nlohmann::ordered_json to_json(const Job& job);

// The array of attempts in that JSON.
nlohmann::ordered_json attempts_json(const std::vector<Attempt>& attempts);

// Converts to and from the text of job.json: the fields above, a version and, if known, `why` (the reason as
// data), `failed_at_ms` and `after_peer`. Reading throws Error with the problem, without the file's name.
// Unknown fields are ignored. Bytes that are not UTF-8 are written as U+FFFD.
nlohmann::ordered_json record_json(const Job& job);
std::string to_json_text(const Job& job);
Job job_record_of(const nlohmann::ordered_json& object);
Job from_json_text(const std::string& text);

// An element of `history --json`.
nlohmann::ordered_json to_json(const LaunchSummary& launch);
inline constexpr int launch_record_version = 1;
// The text of launch.json, which `show --json` prints: the fields above and more.
nlohmann::ordered_json to_json(const PastLaunch& record);
// Parses that text. The file may have been copied with the project, so its content is checked. Throws Error
// if it is not a launch record, or an exception of nlohmann::json.
PastLaunch launch_record_of(const nlohmann::ordered_json& json);

}  // namespace remote::jobs
