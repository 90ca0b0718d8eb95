#pragma once

#include <string>
#include <vector>

#include "agent/facts/kernel_route.hpp"
#include "agent/host/host.hpp"

namespace remote::agent {

// The addresses of each of these names and addresses, at most eight, within five seconds for all.
std::vector<std::vector<IpAddress>> resolve_names(const Host& host, const std::vector<std::string>& names);

}  // namespace remote::agent
