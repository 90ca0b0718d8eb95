#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <semaphore>
#include <string>
#include <vector>

#include <remote/error.hpp>
#include <remote/job.hpp>

#include "jobs/site.hpp"
#include "servers/fanout.hpp"

// The servers of jobs, and their folders there.

namespace remote::jobs {

// The folder for a new job with this configuration.
RemoteFolder remote_folder_for(const config::Config& config, const config::Server& server);
// "~/name/.jobs/<id>", as a word for remote_path_word().
std::string job_folder_text(const Job& job);

bool in_reach(const config::Config& config, const Job& job);
// The server of a job. Throws Error with the job's name if configs.yaml no longer has that server, or if its
// jobs folder there differs from the job's record. A record may come from another user, so a folder is never
// read, copied or removed only because a record names it.
const config::Server& server_of(const config::Config& config, const Job& job);

// Whether this is a Slurm job. For a job without a recorded backend, configs.yaml decides.
bool is_of_slurm(const config::Config& config, const Job& job);

// The id of the start lock that the jobs of one start share (Store::hold_start).
const JobId& start_id_of(const Job& job);

// The jobs in one folder of one server, which a single request can handle.
struct JobsAt {
  std::string server;
  RemoteFolder folder;
  std::vector<Job> jobs;

  std::vector<JobId> ids() const;
};

std::vector<JobsAt> by_job_folder(const std::vector<Job>& jobs);

// Servers on this machine, such as those of a sandbox, share its processors. Actions that check all processes
// take longer the more of them run at once, so only a limited number may run at a time. Other servers do not
// wait, because one address with many ports may belong to many machines.
class HostTurns {
 public:
  explicit HostTurns(const config::Config& config) {
    for (const config::Server& server : config.servers) {
      if (server.hostname.starts_with("127.") || server.hostname == "localhost" || server.hostname == "::1") {
        free_.try_emplace(server.hostname, 16);
      }
    }
  }

  class Turn {
   public:
    Turn(HostTurns& turns, const config::Server& server) {
      if (const auto found = turns.free_.find(server.hostname); found != turns.free_.end()) {
        free_ = &found->second;
        free_->acquire();
      }
    }
    ~Turn() {
      if (free_ != nullptr) {
        free_->release();
      }
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    std::counting_semaphore<>* free_ = nullptr;
  };

 private:
  std::map<std::string, std::counting_semaphore<>> free_;  // by host
};

// Calls `work(connection, jobs_at)` for each place of these jobs, in parallel. `work` returns entries, each
// with a member `job`. Returns all of them, sorted by key. If a server fails, its error is added to `errors`.
// Throws Interrupted.
template <typename Work>
auto on_job_servers(const Site& site, const std::vector<Job>& jobs, std::vector<Error>& errors,
                    const Work& work, ssh::ConnectLimit limit = {}) {
  const std::vector<JobsAt> places = by_job_folder(jobs);
  HostTurns turns(site.config);
  auto outcomes = servers::fan_out(
      places, [](const JobsAt& place) { return place.server; },
      [&](const JobsAt& place, std::size_t) {
        const config::Server& server = server_of(site.config, place.jobs.front());
        const HostTurns::Turn turn(turns, server);
        const auto connection = site.connector.connect(server, site.cancel, limit);
        return work(*connection, place);
      });
  std::invoke_result_t<Work, ssh::Connection&, const JobsAt&> entries;
  for (auto& outcome : outcomes) {
    if (outcome.ok()) {
      std::ranges::move(*outcome.value, std::back_inserter(entries));
    } else {
      errors.push_back(*outcome.error);
    }
  }
  std::ranges::sort(entries, {}, [](const auto& entry) { return entry.job.key; });
  return entries;
}

}  // namespace remote::jobs
