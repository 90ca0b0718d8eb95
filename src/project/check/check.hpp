#pragma once

#include <remote/check.hpp>

#include "project/core.hpp"

namespace remote::project {

// Project::check.
CheckReport check(Core& core, const CheckRequest& request);

}  // namespace remote::project
