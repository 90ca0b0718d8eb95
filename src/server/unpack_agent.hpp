#pragma once

#include <string>

#include "server/agents.hpp"

namespace remote::server {

// The uncompressed program, for servers without xz. Throws std::runtime_error if agent.xz is damaged.
std::string unpack_agent(const Agent& agent);

}  // namespace remote::server
