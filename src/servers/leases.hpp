#pragma once

#include <vector>

#include <remote/lease.hpp>

#include "config/config.hpp"
#include "servers/agent.hpp"
#include "wire/leases.hpp"

// The leases of a server (docs/sharing.md).

namespace remote::servers {

// With `terms`, also asks how much of them is available; nullopt: only lists the leases.
AgentQuestion leases_question(const std::optional<wire::LeaseTerms>& terms);

// `among` are the indices of the GPUs that may be leased; empty: all.
wire::LeaseTerms to_terms(const LeaseRequest& lease, const std::vector<int>& among);
// Uses the configured GPUs and prologue of the server.
wire::LeaseTerms to_terms(const LeaseRequest& lease, const config::Config& config,
                          const config::Server& server);

}  // namespace remote::servers
