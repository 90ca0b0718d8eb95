#pragma once

#include <vector>

#include <remote/lease.hpp>

#include "config/config.hpp"
#include "servers/agent.hpp"
#include "wire/leases.hpp"

// The leases of a server (docs/sharing.md).

namespace remote::servers {

// For how much of `terms` is free, too; nullopt: only the leases.
AgentQuestion leases_question(const std::optional<wire::LeaseTerms>& terms);

// `among`: the GPUs that may be taken, by index; none: all.
wire::LeaseTerms to_terms(const LeaseRequest& lease, const std::vector<int>& among);
// With the GPUs and the prologue of the server.
wire::LeaseTerms to_terms(const LeaseRequest& lease, const config::Config& config,
                          const config::Server& server);

}  // namespace remote::servers
