#pragma once

#include <string>
#include <vector>

#include <remote/error.hpp>
#include <remote/job.hpp>

// Choosing jobs by what a user names: pure functions over a listing.

namespace remote::jobs {

// The jobs that fit, in the order given, each once. A name that fits none or several is an Error (usage) that
// lists what comes near. Tags that fit none give an empty list: see nothing_selected.
std::vector<Job> select(const std::vector<Job>& jobs, const JobSelection& selection);

// The error for a command that needs at least one job and got none: says which tag nobody has, and what
// there is instead.
Error nothing_selected(const std::vector<Job>& jobs, const JobSelection& selection);

// What job-tail follows when nothing is named: the newest running (or else starting) job tagged `master`,
// among those that have all `tags` too. With tags that only ended jobs have, the newest of those. Throws
// Error (usage) that names the running jobs and the last master.
Job default_to_follow(const std::vector<Job>& jobs, const std::vector<std::string>& tags = {});

}  // namespace remote::jobs
