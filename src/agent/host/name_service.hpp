#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "agent/host/host.hpp"

namespace remote::agent {

// The IP addresses of a name, without duplicates. Uses `getent`, because a static program cannot query the
// server's name service itself, and falls back to /etc/hosts. Empty if none is found within the limit. Any
// thread.
std::vector<std::string> look_up_name(const Host& host, const std::string& name,
                                      std::chrono::milliseconds limit);

}  // namespace remote::agent
