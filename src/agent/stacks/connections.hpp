#pragma once

#include "agent/host/host.hpp"
#include "wire/stacks.hpp"

namespace remote::agent {

// Adds the addresses of this user's TCP connections.
void read_connections(const Host& host, wire::WhyReply& reply);

}  // namespace remote::agent
