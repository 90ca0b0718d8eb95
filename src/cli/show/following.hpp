#pragma once

#include <vector>

#include "cli/context.hpp"

namespace remote::cli {

// Shows the output of jobs as it comes, until they end: one job's bytes as they are, several jobs' in whole
// lines with a coloured prefix. Says on stderr how each ended, and the verdict where request.judge asks for
// it. Returns the exit code: that of the job if it is one, else 0 only if all succeeded. On Ctrl-C says that
// the jobs go on, and throws Interrupted. The callbacks of `request` are set here.
int follow_on_screen(Context& context, const std::vector<Job>& jobs, FollowRequest request);

}  // namespace remote::cli
