#include "jobs/remote_folder.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <remote/error.hpp>

namespace remote::jobs {

RemoteFolder remote_folder_for(const config::Config& config, const config::Server& server) {
  return {config.project_path_on(server), config.remote_jobs_folder_name};
}

std::string job_folder_text(const Job& job) {
  return fmt::format("{}/{}/{}", job.remote_folder.project, job.remote_folder.jobs_folder, job.id.text());
}

const config::Server& server_of(const config::Config& config, const Job& job) {
  const auto found = std::find_if(config.servers.begin(), config.servers.end(),
                                  [&](const config::Server& server) { return server.name == job.server; });
  if (found == config.servers.end()) {
    throw Error(fmt::format("cannot ask about job {}", job.key),
                fmt::format("configs.yaml has no server '{}' any more", job.server),
                "put the server back into configs.yaml to reach its jobs")
        .on(job.server);
  }
  return *found;
}

const JobId& start_id_of(const Job& job) {
  return job.launch ? *job.launch : job.id;
}

}  // namespace remote::jobs
