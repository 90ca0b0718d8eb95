#pragma once

#include "agent/host/host.hpp"
#include "wire/ports.hpp"

namespace remote::agent {

// Reads the port and the token of a job with web pages, once a process of this user listens on the port.
// Before that, another user could take the port and receive the token.
wire::WebPortReply find_web_port(const Host& host, const wire::WebPortRequest& request);

}  // namespace remote::agent
