#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include <remote/error.hpp>
#include <remote/job.hpp>

#include "jobs/protocol.hpp"
#include "jobs/site.hpp"
#include "jobs/transitions.hpp"

// Asking servers how their jobs are, and keeping what they say in the store.

namespace remote::jobs {

struct News {
  std::vector<Job> jobs;  // all that were given, in their order, as they are now; unanswered ones `unknown`
  std::vector<Error> silent;     // a server each that could not be asked
  std::optional<Error> unsaved;  // the store could not take the news; they are true all the same
};

// Asks the servers of the jobs that are not over, one exec a server, side by side. A server that takes longer
// than `patience` to connect, or falls silent for so long, or takes a minute for all, leaves the jobs that it
// has not spoken of by then `unknown` in the result and untouched in the store. Throws only on cancel.
News refresh(const Site& site, std::vector<Job> jobs, std::chrono::milliseconds patience);

// Saves news of what has happened already, which stays true also where it cannot be saved: then returns why.
[[nodiscard]] std::optional<Error> save(Store& store, const std::vector<Job>& jobs);

// How the jobs of one server are, asked over a connection that is there. Stores nothing. Throws Error.
std::vector<Job> ask_over(ssh::Connection& connection, const Store& store, std::vector<Job> jobs,
                          const Cancel& cancel);

// Whether the job is still to be started, by a process that is dead: then it is of status_action()'s claim.
// To be looked at before the question: a starter that dies later is found out the next time.
bool start_is_dead(const Store& store, const Job& job);

// The job as an answer of its server tells it, with its first failed rank, which may take another question;
// none where the answer does not speak of it.
std::optional<Job> as_told(ssh::Connection& connection, const Job& job, const StatusAnswer& answer,
                           const Clocks& clocks, const std::vector<JobId>& claim, const Cancel& cancel);

// The same for the ranks on one server of a launch that has just started: the answer waits, 4 s at most,
// until the server's lifeline has told whether it reaches the first one.
std::vector<Job> refresh_for_lifeline(const Site& site, std::vector<Job> jobs);

}  // namespace remote::jobs
