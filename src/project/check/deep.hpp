#pragma once

#include <string>
#include <vector>

#include <remote/check.hpp>

#include "project/check/network.hpp"
#include "project/core.hpp"

namespace remote::project {

// Imports torch, as a job would, on the servers of the report that were reached, and adds the results to
// their facts. One exec per server.
void import_torch(Core& core, const NetworkOptions& options, CheckReport& report);

// The findings about each import, and about differences between the servers' mapped libraries. In the order
// of the report's servers.
std::vector<std::vector<Finding>> deep_findings(const CheckReport& report);

}  // namespace remote::project
