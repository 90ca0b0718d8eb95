#pragma once

#include "agent/host/host.hpp"
#include "wire/ports.hpp"

namespace remote::agent {

// Lists the addresses of the sockets that listen on a TCP port; empty if the kernel's list cannot be read.
wire::ListenersReply list_listeners(const Host& host, const wire::ListenersRequest& request);
// Whether a process of this user listens on the port, on any address.
bool is_own_listener(const Host& host, int port);

}  // namespace remote::agent
