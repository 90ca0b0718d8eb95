#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "jobs/job.hpp"
#include "jobs/protocol.hpp"

// Every rule about how a job's state changes, as pure functions. What a server says about a job goes through
// apply_status; what two processes have heard at different times goes through merge_news (Store::update does
// so).
//
//   starting -> running -> succeeded | failed | killed        what the server tells
//   starting, running   -> lost                               the server tells that nothing is left and no
//   result lost                -> running, succeeded, failed, killed  a later and explicit answer of the
//   server only
//
// No other way leads out of a final state, and `unknown` is shown, never stored: silence changes nothing.

namespace remote::jobs {

// How the reason of a running job begins whose launch has no lifeline between all servers; then ": WHY".
inline constexpr std::string_view no_lifeline = "no lifeline";

// The two clocks at the moment of an answer; seconds since the epoch.
struct Clocks {
  std::int64_t server = 0;  // StatusAnswer::server_now
  std::int64_t local = 0;   // the laptop's, when the answer came
};

// Whether the process that was to start a job still lives (Store::starter_is_dead). Only with a dead one the
// status script is asked to claim the job's id, and only then "no such folder" means: never.
enum class Starter { alive, dead };

// What a job is after a server's answer about it. Instants are shifted to the laptop's clock.
Job apply_status(const Job& job, const StatusReply& reply, const Clocks& clocks, Starter starter);

// What is to be shown of a job whose server did not answer: an unfinished one is `unknown`, with the age of
// the last news as the reason; an ended one stays what it is.
Job as_unanswered(const Job& job, std::int64_t now);

// What is to be stored when `news` comes to a job that is stored as `stored`: see above. Identity (key, id,
// created_at) stays; news that are older than the stored ones, or local while a server has spoken, change
// no state.
Job merge_news(const Job& stored, const Job& news);

}  // namespace remote::jobs
