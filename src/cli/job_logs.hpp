#pragma once

#include <vector>

#include "cli/context.hpp"
#include "jobs/job.hpp"
#include "jobs/store.hpp"

namespace remote::cli {

// Brings job.out and job.err of these jobs into .remote/jobs/<id>/, servers side by side: one rsync a server.
// Jobs that ended and whose logs are complete here are left alone. Shows an error for each server that fails;
// returns how many did.
int bring_logs(Context& context, jobs::Store& store, const std::vector<jobs::Job>& jobs);

}  // namespace remote::cli
