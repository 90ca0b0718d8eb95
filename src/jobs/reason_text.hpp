#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <remote/job.hpp>

// The sentences that stand for a job's reason: in listings, and beside the typed reason in job.json, where
// programs of older versions look for them.

namespace remote::jobs {

// "ended after rank 2", "SIGTERM by ada@laptop, exit 1", "" for none. May quote what a server said: show it
// through visible_text().
std::string reason_text(const JobReason& reason);

// The reason that such a text stands for, for records that have only the text; `other` for a text of any
// other form. reason_text() gives the same text again.
JobReason parse_reason(std::string_view text);

// A kind's name in job.json and in the index: "after_rank".
std::string_view kind_name(JobReason::Kind kind);
std::optional<JobReason::Kind> parse_kind(std::string_view name);

}  // namespace remote::jobs
