#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/host/host.hpp"
#include "agent/job/record.hpp"
#include "agent/launch/supervisor.hpp"
#include "wire/jobs.hpp"
#include "wire/launch.hpp"

// Starts the supervisors of launches (agent/launch/supervisor.hpp), which users know as lifelines, and starts
// dead ones again.

namespace remote::agent {

using SupervisorStarter = std::function<bool(const Host& host, const JobsFolder& folder, const Path& agent,
                                             const Path& program, const std::string& job)>;

// Starts the supervisor of a launch for the jobs with these ids. `program` is the folder of the server
// program in .bin. Each job's folder gets a copy of the spec, so that a dead supervisor can be started again.
void start_lifeline(const Host& host, const JobsFolder& folder, wire::LaunchSpec spec, const Path& program,
                    const std::vector<std::string>& ids,
                    const SupervisorStarter& start = start_launch_supervisor);

// Checks lifelines, for one request. Not thread-safe.
class Lifelines {
 public:
  Lifelines(const Host& host, const JobsFolder& folder, SupervisorStarter start = start_launch_supervisor)
      : host_(host), folder_(folder), start_(std::move(start)) {}

  // Returns the problem with the lifeline of the job's launch; nullopt if it is healthy or does not exist.
  // Restarts a dead lifeline once per launch, unless the process limit is reached. It runs the agent that
  // started the launch, because the lifelines of the other servers do too.
  std::optional<wire::LifelineTrouble> check(const JobRecord& job);

 private:
  wire::LifelineTrouble revive(const JobRecord& job, ProcessId dead);
  bool await_start(const Path& record, ProcessId dead) const;

  const Host& host_;
  const JobsFolder& folder_;
  SupervisorStarter start_;
  std::map<ProcessId, wire::LifelineTrouble> revived_;  // by the dead process
};

}  // namespace remote::agent
