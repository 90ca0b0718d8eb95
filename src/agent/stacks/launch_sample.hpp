#pragma once

#include <string>
#include <vector>

#include "agent/host/host.hpp"
#include "wire/stacks.hpp"

namespace remote::agent {

// Takes a sample of the processes of these jobs from /proc, so no other file system can block it.
// `with_pipes`: also checks for processes that write to a pipe.
wire::LaunchSample take_launch_sample(const Host& host, const std::vector<std::string>& ids, bool with_pipes);

}  // namespace remote::agent
