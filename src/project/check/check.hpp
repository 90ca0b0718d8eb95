#pragma once

#include <vector>

#include <remote/check.hpp>

#include "project/core.hpp"

namespace remote::project {

// Project::check.
CheckReport check(Core& core, const CheckRequest& request);
// Project::mend.
std::vector<Error> mend(Core& core, const CheckReport& report);

}  // namespace remote::project
