#include "jobs/remote_folder.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace remote::jobs {

RemoteFolder remote_folder_of(const Job& job) {
  const std::size_t id_at = job.remote_folder.rfind('/');
  const std::size_t jobs_at =
      id_at == std::string::npos || id_at == 0 ? std::string::npos : job.remote_folder.rfind('/', id_at - 1);
  if (jobs_at == std::string::npos || job.remote_folder.substr(id_at + 1) != job.id.text()) {
    throw Error(fmt::format("job {}: its record is damaged", job.key),
                fmt::format("'{}' is not the folder of a job", job.remote_folder));
  }
  return {job.remote_folder.substr(0, jobs_at), job.remote_folder.substr(jobs_at + 1, id_at - jobs_at - 1)};
}

std::vector<JobId> JobsAt::ids() const {
  std::vector<JobId> ids;
  for (const Job& job : jobs) {
    ids.push_back(job.id);
  }
  return ids;
}

std::vector<JobsAt> by_place(const std::vector<Job>& jobs, std::vector<Error>& errors) {
  std::map<std::pair<std::string, RemoteFolder>, std::vector<Job>> found;
  for (const Job& job : jobs) {
    try {
      found[{job.server, remote_folder_of(job)}].push_back(job);
    } catch (const Error& error) {
      errors.push_back(error.on(job.server));
    }
  }
  std::vector<JobsAt> places;
  for (auto& [place, members] : found) {
    places.push_back({place.first, place.second, std::move(members)});
  }
  return places;
}

RemoteFolder remote_folder_for(const config::Config& config, const config::Server& server) {
  return {config.project_path_on(server), config.remote_jobs_folder_name};
}

std::string job_folder_text(const RemoteFolder& folder, const JobId& id) {
  return fmt::format("{}/{}/{}", folder.project, folder.jobs_folder, id.text());
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
