#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <remote/job.hpp>

// The sentences that stand for a job's reason: in listings, and beside the typed reason in job.json.

namespace remote::jobs {

// "ended after rank 2", "SIGTERM by ada@laptop, exit 1", "" for none. May quote what a server said: show it
// through visible_text().
std::string reason_text(const JobReason& reason);

// A kind's name in job.json and in the index: "after_rank".
std::string_view kind_name(JobReason::Kind kind);
std::optional<JobReason::Kind> parse_kind(std::string_view name);

}  // namespace remote::jobs
