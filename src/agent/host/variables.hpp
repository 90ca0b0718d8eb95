#pragma once

#include <string_view>
#include <vector>

#include "agent/host/host.hpp"
#include "wire/variable.hpp"

namespace remote::agent {

// Replaces the host's environment with variables "NAME=VALUE", each terminated by NUL, as in
// /proc/PID/environ. LC_ALL is C.
void replace_environment(Host& host, std::string_view variables);

// Returns the host with the variables of a request, for programs run for the user. LC_ALL remains C.
Host add_variables(const Host& host, const std::vector<wire::Variable>& variables);

}  // namespace remote::agent
