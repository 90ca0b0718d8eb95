#pragma once

#include <string>
#include <tuple>
#include <vector>

#include <remote/error.hpp>

#include "config/config.hpp"
#include "jobs/job.hpp"

namespace remote::jobs {

// Where a job's folder lies on its server: "<project>/<jobs_folder>/<id>" (see Job::remote_folder).
struct RemoteFolder {
  std::string project;      // "~/name"
  std::string jobs_folder;  // ".jobs"
  friend bool operator<(const RemoteFolder& a, const RemoteFolder& b) {
    return std::tie(a.project, a.jobs_folder) < std::tie(b.project, b.jobs_folder);
  }
};

// From the record, not from the configuration: a job stays where it was started when the project's name or
// remote_path changes later. Throws Error for a record whose folder has another form.
RemoteFolder remote_folder_of(const Job& job);

// Jobs of one server and folder, which one exec can speak of.
struct JobsAt {
  std::string server;
  RemoteFolder folder;
  std::vector<Job> jobs;

  std::vector<JobId> ids() const;
};

// A damaged record is left out, and is one of `errors`: it keeps nothing from the other jobs.
std::vector<JobsAt> by_place(const std::vector<Job>& jobs, std::vector<Error>& errors);

// Where a new job of this configuration goes.
RemoteFolder remote_folder_for(const config::Config& config, const config::Server& server);
std::string job_folder_text(const RemoteFolder& folder, const JobId& id);

// The server of this name; throws Error that names the job when configs.yaml has it no longer.
const config::Server& server_of(const config::Config& config, const Job& job);

// What the jobs of one start share the start lock by (Store::hold_start).
const JobId& start_id_of(const Job& job);

}  // namespace remote::jobs
