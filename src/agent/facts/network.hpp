#pragma once

#include <string_view>

#include "agent/facts/kernel_route.hpp"
#include "agent/host/host.hpp"
#include "wire/facts.hpp"

namespace remote::agent {

// The way to a host, given by name or address, as the kernel routes it. A host of this machine's own
// addresses is reached by the interface with that address, because other servers cannot reach lo.
wire::RouteFacts find_route(const Host& host, std::string_view name);
wire::RouteFacts find_route(const IpAddress& address);

}  // namespace remote::agent
