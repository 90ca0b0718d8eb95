#pragma once

#include <vector>

#include <remote/cancel.hpp>
#include <remote/launch.hpp>

#include "config/config.hpp"
#include "jobs/store.hpp"
#include "ssh/connector.hpp"

// Ending jobs, and removing jobs that have ended. All jobs of a server are done in one exec, servers side by
// side.

namespace remote::jobs {

// Ends jobs (request.by must be set), and looks that nothing is left of them (kill_action). A server gets
// `limit` to answer. `unsaved`: why what became of them could not be recorded here.
KillResult kill(const config::Config& config, Store& store, ssh::Connector& connector,
                const std::vector<Job>& jobs, const KillRequest& request, const Cancel& cancel,
                ssh::ConnectLimit limit = {}, std::optional<Error>* unsaved = nullptr);

// Removes the jobs' folders on the servers, then their records here. A record is removed only after its
// server has said that the folder is gone. The jobs must have ended as far as is known here.
CleanResult clean(const config::Config& config, Store& store, ssh::Connector& connector,
                  const std::vector<Job>& jobs, const Cancel& cancel);

}  // namespace remote::jobs
