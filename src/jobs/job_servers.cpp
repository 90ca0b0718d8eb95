#include "jobs/job_servers.hpp"

#include <optional>

#include <fmt/format.h>

#include "base/group_by.hpp"
#include "jobs/backend_names.hpp"

namespace remote::jobs {

RemoteFolder remote_folder_for(const config::Config& config, const config::Server& server) {
  return {config.project_path_on(server), config.remote_jobs_folder_name};
}

std::string job_folder_text(const Job& job) {
  return fmt::format("{}/{}/{}", job.remote_folder.project, job.remote_folder.jobs_folder, job.id.text());
}

bool in_reach(const config::Config& config, const Job& job) {
  const auto found = std::ranges::find(config.servers, job.server, &config::Server::name);
  return found != config.servers.end() && job.remote_folder == remote_folder_for(config, *found);
}

const config::Server& server_of(const config::Config& config, const Job& job) {
  const auto found = std::ranges::find(config.servers, job.server, &config::Server::name);
  if (found == config.servers.end()) {
    throw Error(fmt::format("cannot ask about job {}", job.key),
                fmt::format("configs.yaml no longer has server '{}'", job.server),
                "put the server back into configs.yaml to reach its jobs")
        .mended_by(Remedy::forget_job, std::to_string(job.key))
        .on(job.server);
  }
  if (const RemoteFolder ours = remote_folder_for(config, *found); job.remote_folder != ours) {
    throw Error(
        fmt::format("cannot ask about job {}", job.key),
        fmt::format("its record places it in {}/{}, but configs.yaml in {}/{}", job.remote_folder.project,
                    job.remote_folder.jobs_folder, ours.project, ours.jobs_folder),
        "put 'name', 'remote_path' and 'remote_jobs_folder_name' back to reach the jobs of that time")
        .on(job.server);
  }
  return *found;
}

bool is_of_slurm(const config::Config& config, const Job& job) {
  return job.backend ? *job.backend == slurm_backend
                     : in_reach(config, job) && server_of(config, job).slurm.has_value();
}

const JobId& start_id_of(const Job& job) {
  return job.launch ? *job.launch : job.id;
}

std::vector<JobId> JobsAt::ids() const {
  std::vector<JobId> ids;
  std::ranges::transform(jobs, std::back_inserter(ids), &Job::id);
  return ids;
}

std::vector<JobsAt> by_job_folder(const std::vector<Job>& jobs) {
  std::vector<JobsAt> places;
  for (const auto& [place, indices] : group_by(
           jobs, [](const Job& job) { return std::optional(std::pair(job.server, job.remote_folder)); })) {
    JobsAt& at = places.emplace_back(JobsAt{place.first, place.second, {}});
    for (const std::size_t i : indices) {
      at.jobs.push_back(jobs[i]);
    }
  }
  return places;
}

}  // namespace remote::jobs
