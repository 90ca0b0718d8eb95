#pragma once

#include <chrono>
#include <vector>

#include "cli/context.hpp"
#include "jobs/job.hpp"
#include "jobs/store.hpp"

namespace remote::cli {

struct WatchOptions {
  bool end_others = true;         // when a rank fails
  std::chrono::seconds grace{5};  // before that: the others may end by themselves, with their own errors
};

// Follows rank 0 of a launch on the screen and waits for the end of all its ranks. When one fails and
// `end_others` is set, the others are ended. Says which failed first. Returns 0 only if all succeeded. On
// Ctrl-C says that the ranks go on, and throws Interrupted.
int watch_launch(Context& context, jobs::Store& store, const std::vector<jobs::Job>& ranks,
                 const WatchOptions& options);

}  // namespace remote::cli
