#pragma once

#include <string_view>

#include "agent/host/host.hpp"

namespace remote::agent {

// Replaces the host's environment by variables "NAME=VALUE", each followed by a zero byte, as in
// /proc/PID/environ. LC_ALL is C.
void replace_environment(Host& host, std::string_view variables);

}  // namespace remote::agent
