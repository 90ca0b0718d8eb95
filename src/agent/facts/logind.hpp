#pragma once

#include <remote/facts.hpp>

#include "agent/host/host.hpp"

namespace remote::agent {

// Whether this process is in a logind session, and which processes logind kills when a session ends. The
// session is read from the kernel, because a container's sshd may not know logind. Any thread.
void read_logind(const Host& host, ServerFacts& facts);

}  // namespace remote::agent
