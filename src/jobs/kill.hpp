#pragma once

#include <vector>

#include <remote/launch.hpp>

#include "jobs/site.hpp"

// Ending jobs, and removing jobs that have ended. All jobs of a server are done in one exec, servers side by
// side.

namespace remote::jobs {

// Ends jobs (request.by must be set), and looks that nothing is left of them (kill_action). A server gets
// `limit` to answer. `unsaved`: why what became of them could not be recorded here.
KillResult kill(const Site& site, const std::vector<Job>& jobs, const KillRequest& request,
                ssh::ConnectLimit limit = {}, std::optional<Error>* unsaved = nullptr);

// Removes the jobs' folders on the servers, then their records here. A record is removed only after its
// server has said that the folder is gone. The jobs must have ended as far as is known here.
CleanResult clean(const Site& site, const std::vector<Job>& jobs);

}  // namespace remote::jobs
