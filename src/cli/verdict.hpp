#pragma once

#include <vector>

#include "cli/context.hpp"
#include "jobs/job.hpp"

namespace remote::cli {

// Whether these are several ranks of the same launch.
bool are_one_launch(const std::vector<jobs::Job>& jobs);

// Says in one paragraph on stderr what became of a launch: which rank failed first and when, the last lines
// of its stderr (asked of its server), and what became of the others.
void tell_verdict(Context& context, const std::vector<jobs::Job>& jobs);

}  // namespace remote::cli
