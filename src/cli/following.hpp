#pragma once

#include <vector>

#include "cli/context.hpp"
#include "jobs/job.hpp"
#include "jobs/store.hpp"

namespace remote::cli {

struct FollowChoice {
  std::optional<int> lines;  // begin with the last lines; nullopt: from the first byte
  bool follow = true;
  bool whole_launch = false;  // the jobs are all ranks of one launch: its verdict is told at the end
};

// Shows the output of jobs as it comes, until they end: one job's bytes as they are, several jobs' in whole
// lines with a coloured prefix. Says on stderr how each ended, and of a whole launch the verdict. Returns the
// exit code: that of the job if it is one, else 0 only if all succeeded. On Ctrl-C says that the jobs go on,
// and throws Interrupted.
int follow_on_screen(Context& context, jobs::Store& store, const std::vector<jobs::Job>& jobs,
                     const FollowChoice& choice);

}  // namespace remote::cli
