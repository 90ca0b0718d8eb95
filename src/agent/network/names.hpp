#pragma once

#include <string>
#include <vector>

#include "agent/facts/kernel_route.hpp"
#include "agent/host/host.hpp"

namespace remote::agent {

// The addresses for each of these names and addresses, at most eight each, within five seconds in total.
std::vector<std::vector<IpAddress>> resolve_names(const Host& host, const std::vector<std::string>& names);

}  // namespace remote::agent
