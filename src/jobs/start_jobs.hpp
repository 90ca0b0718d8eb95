#pragma once

#include <string>
#include <vector>

#include "jobs/any_agent.hpp"
#include "jobs/start_script.hpp"
#include "wire/start.hpp"

namespace remote::jobs {

// The jobs of one server that are started together.
struct StartOrder {
  RemoteFolder folder;
  std::vector<StartRequest> requests;
  std::optional<wire::LaunchSpec> launch{};  // its supervisor starts with the jobs
  std::optional<wire::LeaseToTake> lease{};  // for all of them together
};

// Makes the message of ask_start(). Throws Error (usage) for an invalid variable name.
wire::JobsToStart jobs_to_start(const StartOrder& order);

// Starts all jobs of a server with one question. Jobs whose id exists there are not started again. Throws
// servers::Refused if nothing was started, Error if that is unknown, Error (usage) like jobs_to_start() and
// for more than 16 MB, and Interrupted.
std::vector<wire::StartedJob> ask_start(const AnyAgent& agent, const StartOrder& order);

}  // namespace remote::jobs
