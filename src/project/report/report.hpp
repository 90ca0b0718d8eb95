#pragma once

#include <remote/report.hpp>

#include "project/core.hpp"

namespace remote::project {

// Project::report.
Report report(Core& core, const ReportRequest& request);

}  // namespace remote::project
