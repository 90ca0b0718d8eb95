#pragma once

#include <vector>

#include <remote/top.hpp>

#include "agent/host/host.hpp"

namespace remote::agent {

// The running jobs of this user's other projects on this server, by folder. Projects of practice servers are
// not listed, because practice servers on one machine see each other's processes. Any thread.
std::vector<OtherProject> find_other_projects(const Host& host, const Path& project);

}  // namespace remote::agent
