#pragma once

#include <string>

#include "config/config.hpp"
#include "jobs/job.hpp"

namespace remote::jobs {

// Where a new job of this configuration goes.
RemoteFolder remote_folder_for(const config::Config& config, const config::Server& server);
// "~/name/.jobs/<id>", as remote_path_word() takes it.
std::string job_folder_text(const Job& job);

// The server of this name; throws Error that names the job when configs.yaml has it no longer.
const config::Server& server_of(const config::Config& config, const Job& job);

// What the jobs of one start share the start lock by (Store::hold_start).
const JobId& start_id_of(const Job& job);

}  // namespace remote::jobs
