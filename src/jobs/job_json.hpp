#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>
#include <remote/job.hpp>

// A job as JSON: the text of job.json, and an element of `job-list --json`.

namespace remote::jobs {

// The fields of `job-list --json`, in the order that the documentation gives. Instants are
// "2026-11-21T07:30:00Z", `signal` is a name ("SIGTERM"), `reason` is a sentence; what is not known is null.
nlohmann::ordered_json to_json(const Job& job);

// job.json's text and back: the fields above, a version, and where they are known `why` (the reason as data)
// `failed_at_ms` and `after_peer`. from_json_text throws Error that says what is wrong, without the file's
// name. Fields that it does not know are ignored; bytes that are no UTF-8 are written as U+FFFD.
nlohmann::ordered_json record_json(const Job& job);
std::string to_json_text(const Job& job);
Job from_json_text(const std::string& text);

}  // namespace remote::jobs
