#pragma once

#include <vector>

#include "cli/context.hpp"
#include "jobs/job.hpp"
#include "jobs/start.hpp"
#include "jobs/store.hpp"

namespace remote::cli {

// Warns of launches whose servers do not all reach the first one: which server, what follows of it, and how
// to mend it. A line a server and launch. Returns whether there was something to say.
bool warn_of_missing_lifelines(Context& context, const std::vector<jobs::Job>& jobs);

// The same for a launch that has just started and that nobody follows: waits until the servers' lifelines
// have connected, which takes a moment, or have given up, which takes two seconds.
void warn_when_lifelines_stand(Context& context, jobs::Store& store, const jobs::Lifeline& lifeline,
                               const std::vector<jobs::Job>& ranks);

}  // namespace remote::cli
