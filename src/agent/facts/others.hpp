#pragma once

#include <string>
#include <vector>

#include <remote/top.hpp>

#include "agent/host/host.hpp"

namespace remote::agent {

// The running jobs of this user on this server.
struct RunningJobs {
  std::vector<std::string> here;       // ids of those of the project
  std::vector<OtherProject> others{};  // by folder
};

// Projects of practice servers are not listed among the others, because practice servers on one machine see
// each other's processes. Any thread.
RunningJobs find_running_jobs(const Host& host, const Path& project);

}  // namespace remote::agent
