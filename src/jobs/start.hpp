#pragma once

#include <optional>
#include <string>
#include <vector>

#include <remote/error.hpp>
#include <remote/job.hpp>

#include "jobs/site.hpp"
#include "jobs/start_script.hpp"
#include "wire/launch.hpp"
#include "wire/leases.hpp"
#include "wire/notify.hpp"

namespace remote::jobs {

// A job to start: its future record (id, server, command, tags, rank …; key, state and times are set later)
// and its process.
struct NewJob {
  Job job;
  servers::ProcessSpec process;
  std::string init_file{};  // set if the launch has a shared file: see servers/init_file.hpp
  // The batch script to submit to Slurm; "" if the job is part of another job's array.
  std::string batch{};
  bool requeue = false;                      // Slurm may requeue it
  std::vector<JobId> after{};                // it starts after these have succeeded
  std::optional<wire::LeaseToTake> lease{};  // shared by all jobs of this start on their server
  std::optional<wire::NotifySpec> notify{};  // for a launch's first job, without the launch; secret
  // The file `mpi_hosts` of a launch's first job, with --mpi-agent ssh (docs/protocol.md). "": none.
  std::string mpi_hosts{};
  std::string web{};  // the file `web` of a job with web pages, "PORT TOKEN"; secret. "": none
};

// Completes the spec of a launch for one of its servers, with these jobs on it.
wire::LaunchSpec spec_for(const wire::LaunchSpec& launch, const std::string& server,
                          const std::vector<Job>& jobs);

struct StartResult {
  std::vector<Job> jobs;           // all, in the given order, with keys
  std::vector<Error> errors;       // one for each server or job that did not start or whose state is unknown
  std::optional<Error> unsaved{};  // the states could not be recorded here, but are valid
};

// Stores new jobs as started from this project's folder. Throws Error.
void add_new(const config::Config& config, Store& store, std::vector<Job>& jobs);

// Records the jobs and starts them, with one request per server and servers in parallel. The records are on
// disk before anything is sent, so that `refresh` can determine the outcome after a crash. Throws Error if a
// server is unreachable or the store cannot be written; then nothing was started. Once a byte of a request
// was sent, failures are part of the result. `launch`: starts its supervisor on each of its servers; `server`
// and `jobs` are set here.
StartResult start(const Site& site, std::vector<NewJob> new_jobs,
                  const std::optional<wire::LaunchSpec>& launch = {});

}  // namespace remote::jobs
