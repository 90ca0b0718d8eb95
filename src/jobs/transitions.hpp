#pragma once

#include <chrono>
#include <optional>

#include <remote/job.hpp>

#include "jobs/protocol.hpp"

// All rules about how a job's state changes, as pure functions. What a server says about a job goes through
// apply_status; what two processes have heard at different times goes through merge_news (see Store::update).
//
//   starting -> running -> succeeded | failed | killed        what the server tells
//   starting, running -> lost                          the server tells that nothing is left, and no result
//   lost -> running, succeeded, failed, killed         only by a later and explicit answer of the server
//
// Job::failed_at is when a job failed, of one that was killed when it was told to stop, and of one that runs
// when it last wrote to its output.
//
// No other way leads out of a final state. `unknown` is shown, never stored: silence changes nothing.

namespace remote::jobs {

// The two clocks at the moment of an answer.
struct Clocks {
  Instant server;  // the server's
  Instant local;   // the laptop's, when the answer came
  // How far the server's clock is ahead of the laptop's, where the server tells parts of a second.
  std::optional<std::chrono::milliseconds> ahead;
};

// From an answer, and the laptop's clock before the question and after the answer. The server
// read its clock in between. Clocks that may agree are taken to agree, so that measuring adds no error when
// several answers of one server are compared, or those of servers whose clocks are kept.
Clocks clocks_of(const StatusAnswer& answer, ExactInstant asked, ExactInstant answered);

// Whether the process that was to start a job still lives (Store::starter_is_dead). Only with a dead one the
// status script is asked to claim the job's id, and only then "no such folder" means: never.
enum class Starter { alive, dead };

// When a job failed, by the server's clock. A process that fails writes its last words first,
// and may then need seconds to exit, while those that lose their connection to it are gone at once. So for an
// exit code it is the last write to stderr, if that was at most ten seconds before the end; else (also for a
// shell's 128+N) it is the end. nullopt when the server tells no parts of a second, or when the clock of its
// files is not its own.
std::optional<ExactInstant> failure_moment(const StatusReply& reply);

// What a job is after a server's answer about it. Instants are shifted to the laptop's clock.
Job apply_status(const Job& job, const StatusReply& reply, const Clocks& clocks, Starter starter);

// What to show of a job whose server did not answer: an unfinished one is `unknown`, with the age of the last
// news as the reason; an ended one stays what it is.
Job as_unanswered(const Job& job, Instant now);

// What to store when there is `news` of a job that is stored as `stored`. Key, id and created_at stay. News
// that is older than the stored job, or local when a server has spoken, changes no state. `now`: the clock by
// which both were dated. It has been set back where the stored job is of its future, which then says nothing
// about what is older.
Job merge_news(const Job& stored, const Job& news, Instant now);

}  // namespace remote::jobs
