#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "agent/host/host.hpp"

namespace remote::agent {

// The IP addresses of a name, without repetitions, by `getent`, because a static program cannot ask the
// server's name service itself; else by /etc/hosts. Empty if it has none within the limit. Any thread.
std::vector<std::string> look_up_name(const Host& host, const std::string& name,
                                      std::chrono::milliseconds limit);

}  // namespace remote::agent
