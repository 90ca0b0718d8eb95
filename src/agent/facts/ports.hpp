#pragma once

#include "agent/host/host.hpp"
#include "wire/facts.hpp"

namespace remote::agent {

// Whether a TCP port is free, which process listens on it if not, and two other ports that are free. Port 0
// only returns those two. Does not bind any port.
wire::PortFacts look_at_port(const Host& host, int port);

}  // namespace remote::agent
