#pragma once

#include <string_view>

#include "agent/facts/kernel_route.hpp"
#include "agent/host/host.hpp"
#include "wire/facts.hpp"

namespace remote::agent {

// The kernel's route to a host, given by name or address. If the address belongs to this machine, returns the
// interface that has it instead of lo, because other servers cannot reach lo.
wire::RouteFacts find_route(const Host& host, std::string_view name);
wire::RouteFacts find_route(const IpAddress& address);

}  // namespace remote::agent
