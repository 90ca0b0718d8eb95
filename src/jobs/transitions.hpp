#pragma once

#include <chrono>
#include <optional>

#include <remote/job.hpp>

#include "wire/jobs.hpp"

// All rules about how a job's state changes, as pure functions. A server's report about a job goes through
// apply_status; the states that two processes learned at different times go through merge_news (see
// Store::update).
//
//   starting -> running -> succeeded | failed | killed        reported by the server
//   starting, running -> lost                          its machine reports no processes and no result
//   lost -> running, succeeded, failed, killed         only by a later and explicit answer of the server
//
// Job::failed_at is when a job failed. For a killed job it is the time of the stop, and for a running job the
// time of its last output.
//
// A final state never changes otherwise. `unknown` is shown, never stored: silence changes nothing.

namespace remote::jobs {

// The two clocks at the time of an answer.
struct Clocks {
  Instant server;
  Instant local;  // the laptop's, when the answer arrived
  // How far the server's clock is ahead of the laptop's; nullopt if no server was asked.
  std::optional<std::chrono::milliseconds> ahead;
};

// A reading of a server's clock while it answered.
struct ServerTime {
  ExactInstant now;       // by the server's clock
  ExactInstant heard_at;  // by the laptop's clock: when the message with it arrived
};

// Computes the clocks from an answer, and from the laptop's times of the question and the answer. The server
// read its clock in between. Clocks that may agree count as equal, so that measuring adds no error when
// answers of one server are compared, or those of servers with synchronized clocks.
Clocks clocks_of(const ServerTime& time, ExactInstant asked, ExactInstant answered);

// Whether the process that starts the job is still alive (Store::starter_is_dead). Only if it is dead, the
// server is asked to claim the job's id, and "no such folder" means that it never starts.
enum class Starter { alive, dead };

// When a job failed, by the server's clock. A failing process writes its last lines first and can take
// seconds to exit, while peers that lose the connection to it exit immediately. So an exit code uses the last
// write to stderr, if that was at most ten seconds before the end. Otherwise (also for a shell's 128+N) it is
// the end. nullopt if only the second of the end is known.
std::optional<ExactInstant> failure_moment(const wire::JobReport& report);

// The job's new state after a server's answer about it. Times are converted to the laptop's clock.
Job apply_status(const Job& job, const wire::JobReport& report, const Clocks& clocks, Starter starter);

// The job's state to show if its server did not answer: an unfinished job is `unknown`, with the age of the
// last answer as the reason; a finished one is unchanged.
Job as_unanswered(const Job& job, Instant now);

// The job to store, given the stored one and newer information about it. Key, id and created_at are kept.
// `news` changes no state if it is older than the stored job, or local although a server has answered. `now`:
// the clock that dated both. If the stored job is in its future, the clock was set back, and the stored time
// is ignored.
Job merge_news(const Job& stored, const Job& news, Instant now);

}  // namespace remote::jobs
