#pragma once

#include <string>
#include <vector>

#include <remote/top.hpp>

#include "agent/host/host.hpp"

namespace remote::agent {

struct RunningJobs {
  std::vector<std::string> here;       // the ids of this project's jobs
  std::vector<OtherProject> others{};  // sorted by folder
};

// Practice servers on one machine see each other's processes, so projects of practice servers are not listed
// among the others. Any thread.
RunningJobs find_running_jobs(const Host& host, const Path& project);

}  // namespace remote::agent
