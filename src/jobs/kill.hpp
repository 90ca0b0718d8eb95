#pragma once

#include <vector>

#include <remote/launch.hpp>

#include "jobs/site.hpp"

// Stops jobs, and removes jobs that have ended. Servers are handled in parallel, each with one request.

namespace remote::jobs {

// Stops jobs (request.by must be set), and checks that nothing is left of them (ask_stop). A server gets
// `limit` to answer. `unsaved`: set if the outcome could not be recorded here.
KillResult kill(const Site& site, const std::vector<Job>& jobs, const KillRequest& request,
                ssh::ConnectLimit limit = {}, std::optional<Error>* unsaved = nullptr);

// Removes the jobs' folders on the servers, then their records here. A record is removed only after its
// server has confirmed that the folder is gone. The jobs must have ended, as far as is known here.
CleanResult clean(const Site& site, const std::vector<Job>& jobs);

}  // namespace remote::jobs
