#pragma once

#include <string>
#include <vector>

#include <remote/error.hpp>
#include <remote/job.hpp>

// Selects jobs by the names that a user gives: pure functions over a listing.

namespace remote::jobs {

// The matching jobs in the given order, without duplicates. If a name matches none or several, throws Error
// (usage) with a list of similar ones. If tags match no job, returns an empty list: see nothing_selected().
std::vector<Job> select(const std::vector<Job>& jobs, const JobSelection& selection);

// The error for a command that needs at least one job but got none. It names the tag that no job has, and
// lists the existing ones.
Error nothing_selected(const std::vector<Job>& jobs, const JobSelection& selection);

// The job that job-tail follows by default: the newest running (or else starting) job with the tag `master`
// and all `tags`. If only ended jobs have these tags, the newest of those. Throws Error (usage) with the
// running jobs and the last master.
Job default_to_follow(const std::vector<Job>& jobs, const std::vector<std::string>& tags = {});

}  // namespace remote::jobs
