#pragma once

#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/launch.hpp>

#include "config/config.hpp"
#include "jobs/job.hpp"
#include "jobs/protocol.hpp"
#include "jobs/store.hpp"
#include "ssh/connector.hpp"

namespace remote::jobs {

// Ends jobs (request.by must be set), all of a server in one exec, servers side by side, and looks that
// nothing is left (kill_script).
KillResult kill(const config::Config& config, Store& store, ssh::Connector& connector,
                const std::vector<Job>& jobs, const KillRequest& request, const Cancel& cancel);

}  // namespace remote::jobs
