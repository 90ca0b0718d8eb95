#pragma once

#include <optional>
#include <string>
#include <vector>

#include <remote/gpu.hpp>
#include <remote/launch.hpp>

#include "project/core.hpp"
#include "servers/facts.hpp"

// Whether what a launch or a job leases is to be had.

namespace remote::project {

// What a server has just said.
struct FreshLeases {
  wire::FreeResources free;
  std::vector<Lease> leases{};
  std::vector<Gpu> gpus{};  // with their processes
};

// Why it cannot be taken there now, or with LeaseRequest::wait ever; nullopt: it can.
std::optional<Error> lease_problem(const LeaseRequest& wanted, const FreshLeases& found);

// Throws Error where it cannot be taken on the server that has answered. `times`: so many servers of a launch
// are this one machine by other names.
void judge_lease(const LeaseRequest& wanted, const servers::FactsAnswer& answer, const std::string& server,
                 int times = 1);

// The error with a hint that names the running launches of this project with leases on its server. Other
// errors than those that waiting helps against are returned unchanged.
Error name_holders(const Core& core, const Error& problem);

// Throws Error (usage) for what cannot be meant. `env`: variables of the jobs.
void check_lease(const LeaseRequest& lease, const Env& env, const std::string& what);

}  // namespace remote::project
