#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include <remote/error.hpp>
#include <remote/job.hpp>

#include "jobs/ask.hpp"
#include "jobs/site.hpp"
#include "jobs/transitions.hpp"

// Queries servers about their jobs, and stores the answers.

namespace remote::jobs {

struct News {
  std::vector<Job>
      jobs;  // all given jobs in the same order, in their current states; `unknown` if there was no answer
  std::vector<Error> silent;     // one for each server that could not be queried
  std::optional<Error> unsaved;  // the store could not be written; the states above are valid
};

// Queries the servers of unfinished jobs in parallel. A server fails if it takes longer than `patience` to
// connect, is silent for that long, or takes more than a minute in total. Jobs that it has not reported until
// then are `unknown` in the result and unchanged in the store. Throws only on cancel.
News refresh(const Site& site, std::vector<Job> jobs, std::chrono::milliseconds patience);

// Saves the states of jobs. Returns the error if that fails; the states are still valid.
[[nodiscard]] std::optional<Error> save(Store& store, const std::vector<Job>& jobs);

// Queries the jobs of one server over an open connection, without storing the answer. Throws Error.
std::vector<Job> ask_over(ssh::Connection& connection, const Store& store, std::vector<Job> jobs,
                          const Cancel& cancel);

// Whether the job has not started and its starter is dead. In that case, add it to the claim (StateQuestion).
// Check this before the query. If a starter dies later, the next query notices it.
bool start_is_dead(const Store& store, const Job& job);

// The job's state according to its server's answer; nullopt if the answer does not contain the job. May ask
// the agent about failed ranks.
std::optional<Job> as_told(const AnyAgent& agent, const Job& job, const StateAnswer& answer,
                           const Clocks& clocks, const std::vector<JobId>& claim);

// Queries the ranks on one server of a newly started launch, without storing the answer. Waits up to 4 s
// until the server's lifeline knows whether it can reach the first server.
std::vector<Job> ask_with_lifeline(const Site& site, std::vector<Job> jobs);

}  // namespace remote::jobs
