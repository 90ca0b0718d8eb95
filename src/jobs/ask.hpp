#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <remote/error.hpp>
#include <remote/job.hpp>

#include "jobs/any_agent.hpp"
#include "jobs/transitions.hpp"
#include "wire/jobs.hpp"

// Asks a server's agent about jobs. Ignores jobs in an answer that were not requested, and repeated reports
// of a job. All functions throw Interrupted and Error, including for a malformed answer.

namespace remote::jobs {

struct StateQuestion {
  RemoteFolder folder;
  std::vector<JobId> ids;
  std::vector<JobId> claim{};   // see wire::StateRequest
  bool await_lifeline = false;  // see wire::StateRequest
  bool last_lines = false;
  std::chrono::milliseconds timeout{10'000};
  std::chrono::milliseconds silence{0};  // longest time without a message; 0: `timeout`
  // After an Error, return the reports received before it, with the error in StateAnswer::failure.
  bool keeps_partial = false;
};

struct StateAnswer {
  std::optional<ServerTime> time{};  // nullopt only after a failure
  std::map<JobId, wire::JobReport> jobs{};
  std::optional<Error> failure{};

  // nullptr if the server reported nothing about it.
  const wire::JobReport* find(const JobId& id) const;
};

StateAnswer ask_state(const AnyAgent& agent, const StateQuestion& question);

// Stops jobs in parallel: sends `signal` and CONT to all their processes, KILL `grace_s` seconds later to
// those still alive, and checks a last time within 2 seconds. A job that had ended keeps its result and is
// `ended`; its leftover processes are stopped too (then signalled > 0). A job that was not started (`none`)
// will never start. If even the project's folder is missing, only ids in `claim` are `none`; the others are
// `refused`.
struct StopQuestion {
  RemoteFolder folder;
  std::vector<JobId> ids;
  int signal = 15;
  int grace_s = 0;
  JobReason by{.kind = JobReason::Kind::by_user};
  std::vector<JobId> claim{};
  std::vector<JobId> dead{};  // StateRequest::claim for the reports
};

struct StopAnswer {
  std::map<JobId, wire::StopResult> results{};
  StateAnswer state{};  // after the stop; its time is from before the stop
};

// Throws Error (usage) for an invalid signal.
StopAnswer ask_stop(const AnyAgent& agent, const StopQuestion& question);

// Removes the folders of jobs. The server checks first that they are not running.
using CleanAnswer = std::map<JobId, wire::CleanedJob>;
CleanAnswer ask_clean(const AnyAgent& agent, const RemoteFolder& folder, const std::vector<JobId>& ids);
// Whether the job's folder no longer exists.
bool is_removed(wire::CleanOutcome outcome);

// The failed ranks of a job with several ranks, by their number in the launch, with at most this many last
// lines each. Empty for other jobs.
struct WorkersAnswer {
  ServerTime time{};
  std::map<int, wire::FailedWorker> workers{};
};
WorkersAnswer ask_workers(const AnyAgent& agent, const RemoteFolder& folder, const JobId& id, int lines);

// Requests the last lines of these files for each job, file by file. The lines are untrusted text.
struct LinesQuestion {
  RemoteFolder folder;
  std::vector<JobId> ids;
  std::vector<std::string> files;
  int count = 10;  // of each file
};
std::vector<std::string> ask_lines(const AnyAgent& agent, const LinesQuestion& question);

}  // namespace remote::jobs
