#pragma once

#include <string>
#include <vector>

#include <remote/check.hpp>

#include "project/check/network.hpp"
#include "project/core.hpp"

namespace remote::project {

// Imports torch on the servers of the report that were reached, as a job would, and puts what came of it into
// their facts. One exec a server.
void import_torch(Core& core, const NetworkOptions& options, CheckReport& report);

// What that means: of each server by itself, and of their mapped libraries beside each other. In the order of
// the report's servers.
std::vector<std::vector<Finding>> deep_findings(const CheckReport& report);

}  // namespace remote::project
