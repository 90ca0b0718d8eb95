#pragma once

#include <optional>
#include <string>
#include <vector>

#include <remote/gpu.hpp>
#include <remote/launch.hpp>

#include "project/core.hpp"
#include "servers/facts.hpp"

// Checks whether the leases of a launch or a job are available.

namespace remote::project {

struct FreshLeases {
  wire::FreeResources free;
  std::vector<Lease> leases{};
  std::vector<Gpu> gpus{};  // including their processes
};

// Why the lease is not available now or, with LeaseRequest::wait, ever; nullopt: it is.
std::optional<Error> lease_problem(const LeaseRequest& wanted, const FreshLeases& found);

// Throws Error if the lease is not available on the server that sent `answer`. `times`: number of servers of
// the launch that are this same machine.
void judge_lease(const LeaseRequest& wanted, const servers::FactsAnswer& answer, const std::string& server,
                 int times = 1);

// The error with a hint that names the running launches of this project with leases on its server. Errors
// that waiting does not solve are returned unchanged.
Error name_holders(const Core& core, const Error& problem);

// Throws Error (usage) for a request that makes no sense. `env`: variables of the jobs.
void check_lease(const LeaseRequest& lease, const Env& env, const std::string& what);

}  // namespace remote::project
