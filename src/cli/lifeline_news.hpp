#pragma once

#include <vector>

#include "cli/context.hpp"
#include "jobs/job.hpp"

namespace remote::cli {

// Warns of launches whose servers do not all reach the first one: which server, what follows of it, and how
// to mend it. A line a server and launch. Returns whether there was something to say.
bool warn_of_missing_lifelines(Context& context, const std::vector<jobs::Job>& jobs);

}  // namespace remote::cli
