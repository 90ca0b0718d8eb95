#pragma once

#include <optional>

#include "agent/facts/activation.hpp"
#include "agent/host/host.hpp"
#include "wire/facts.hpp"

namespace remote::agent {

// Answers the parts of the request that depend on the Python environment: python, program and mpi. It enters
// the environment at most once, in one process. If none of these parts need it, it does not enter it and
// returns nullopt.
std::optional<Activation> read_environment(const Host& host, const wire::FactsRequest& request,
                                           wire::FactsReply& reply);

}  // namespace remote::agent
