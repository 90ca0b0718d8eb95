#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>
#include <remote/history.hpp>

// A job as JSON: the text of job.json, and an element of `job-list --json`. And a launch.

namespace remote::jobs {

// The sentence that stands for a job's reason, in listings and beside the typed reason in job.json:
// "ended after rank 2", "SIGTERM by ada@laptop, exit 1", "" for none. May quote what a server said: show it
// through visible_text().
std::string reason_text(const JobReason& reason);

// The fields of `job-list --json`, in the order that the documentation gives. Instants are
// "2026-11-21T07:30:00Z", `signal` is a name ("SIGTERM"), `reason` is a sentence; what is not known is null.
nlohmann::ordered_json to_json(const Job& job);

// An array, as it is in that.
nlohmann::ordered_json attempts_json(const std::vector<Attempt>& attempts);

// job.json's text and back: the fields above, a version, and where they are known `why` (the reason as data)
// `failed_at_ms` and `after_peer`. Reading throws Error that says what is wrong, without the file's name.
// Fields that it does not know are ignored; bytes that are no UTF-8 are written as U+FFFD.
nlohmann::ordered_json record_json(const Job& job);
std::string to_json_text(const Job& job);
Job job_record_of(const nlohmann::ordered_json& object);
Job from_json_text(const std::string& text);

// An element of `history --json`.
nlohmann::ordered_json to_json(const LaunchSummary& launch);
inline constexpr int launch_record_version = 1;
// The text of launch.json, which `show --json` prints: the above and more.
nlohmann::ordered_json to_json(const PastLaunch& record);
// Takes that back. The file may have come with the project, so what it says is checked. Throws Error where it
// is no such record, or one of nlohmann's exceptions.
PastLaunch launch_record_of(const nlohmann::ordered_json& json);

}  // namespace remote::jobs
