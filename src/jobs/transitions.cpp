#include "jobs/transitions.hpp"

#include <algorithm>
#include <climits>
#include <string>

namespace remote::jobs {
namespace {

using std::chrono::floor;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = JobReason::Kind;

constexpr int sigkill = 9;

// A server's instant on the laptop's clock. Both clocks are read in whole seconds, so the same instant comes
// out a second earlier or later from one answer to the next: a stored value that is as near as that stays.
std::optional<Instant> shifted(const std::optional<Instant>& server_time, const Clocks& clocks,
                               const std::optional<Instant>& stored, Instant not_before) {
  if (!server_time) {
    return stored;
  }
  constexpr seconds jitter{2};
  const Instant time =
      std::max(not_before, std::min(*server_time + (clocks.local - clocks.server), clocks.local));
  return stored && std::chrono::abs(*stored - time) <= jitter ? stored : time;
}

// failure_moment() on the laptop's clock, of a job that has failed or was killed.
std::optional<ExactInstant> shifted_failure(const Job& job, const StatusReply& reply, const Clocks& clocks) {
  const std::optional<ExactInstant> moment = failure_moment(reply);
  if (!moment || !clocks.ahead || job.state == JobState::succeeded) {
    return std::nullopt;
  }
  return std::clamp<ExactInstant>(*moment - *clocks.ahead, job.created_at,
                                  std::max(job.created_at, clocks.local + seconds(1)));
}

JobReason stop_reason(const StatusReply& reply) {
  JobReason reason = reply.stop_by;
  if (reason.kind == Kind::by_user || reason.kind == Kind::by_launch) {
    reason.number = *reply.stop_signal;
    if (reply.end->status != ExitStatus::signalled(*reply.stop_signal)) {
      reason.result = reply.end->status;
    }
  }
  return reason;
}

JobReason running_reason(const StatusReply& reply) {
  if (reply.left) {
    return {.kind = Kind::told_to_end, .number = reply.pid.value_or(0)};
  }
  if (!reply.supervised) {
    return {.kind = Kind::unsupervised};
  }
  return reply.reason.empty() ? reply.lifeline : JobReason{.kind = Kind::other, .text = reply.reason};
}

// `text`: what its scheduler says of it, which then is the reason.
void lose(Job& job, Kind why, const std::string& text = "") {
  job.state = JobState::lost;
  job.reason = text.empty() ? JobReason{.kind = why} : JobReason{.kind = Kind::by_scheduler, .text = text};
  job.result.reset();
}

// Only to the second in a record of an older build.
std::optional<ExactInstant> exact_end(const StatusReply& reply) {
  return reply.end && reply.end->by != "-" ? reply.end->at : std::nullopt;
}

// Whether its last words on stderr can be about its end; true where their time is not known.
bool soon_after_last_words(const StatusReply& reply) {
  constexpr seconds longest_exit{10};
  const std::optional<ExactInstant> end = exact_end(reply);
  return !reply.wrote_at || !end || *end - *reply.wrote_at <= longest_exit;
}

void apply_end(Job& job, const StatusReply& reply) {
  job.reason = {};
  if (!reply.end) {
    lose(job, Kind::no_result);
    return;
  }
  const ExitStatus result = reply.end->status;
  job.result = result;
  if (reply.stop_signal) {
    job.state = JobState::killed;
    if (!result.signal()) {
      job.result = ExitStatus::signalled(*reply.stop_signal);
    }
    job.reason = stop_reason(reply);
    return;
  }
  if (result.success()) {
    job.state = JobState::succeeded;
    return;
  }
  job.state = JobState::failed;
  // Nobody's absence sends SIGKILL.
  job.after_peer = reply.after_peer && result.shell_code() != 128 + sigkill && soon_after_last_words(reply);
  if (!reply.reason.empty()) {
    job.reason = {.kind = reply.backend == local_backend ? Kind::other : Kind::by_scheduler,
                  .text = reply.reason};
  } else if (reply.oom) {
    // 137 is how a shell reports a child that SIGKILL ended.
    job.reason.kind = result.shell_code() == 128 + sigkill ? Kind::out_of_memory : Kind::server_out_of_memory;
  }
}

// News of a job that has ended: only what it has left behind can change, and what is known of its usage.
Job with_news_of_end(const Job& job, const StatusReply& reply, const Clocks& clocks) {
  using Phase = StatusReply::Phase;
  // `left`: a process that a kill could not end
  const std::optional<int> left = reply.left ? 1 : reply.leftovers;
  const bool tells =
      !reply.unseen && (reply.left || reply.phase == Phase::ended || reply.phase == Phase::none);
  const bool used = reply.usage && !job.usage;
  if ((left == job.leftovers || !tells) && !used) {
    return job;
  }
  Job fresh = job;
  fresh.leftovers = tells ? left : job.leftovers;
  fresh.usage = used ? reply.usage : job.usage;
  fresh.checked_at = clocks.local;
  return fresh;
}

// The attempts before the present one, by this machine's clock. An answer that has none tells nothing of
// them.
std::vector<Attempt> shifted_attempts(const Job& job, const StatusReply& reply, const Clocks& clocks) {
  std::vector<Attempt> attempts = reply.attempts.size() < job.attempts.size() ? job.attempts : reply.attempts;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    if (i < job.attempts.size()) {
      attempts[i] = job.attempts[i];  // else each answer would move it by a second
      continue;
    }
    for (Instant* at : {&attempts[i].began_at, &attempts[i].failed_at, &attempts[i].next_at}) {
      *at += clocks.local - clocks.server;
    }
  }
  return attempts;
}

}  // namespace

Clocks clocks_of(const StatusAnswer& answer, ExactInstant asked, ExactInstant answered) {
  // The server tells its clock first, and may take long for the rest.
  const milliseconds since = answer.told_at > ExactInstant()
                                 ? std::max(answered - answer.told_at, milliseconds(0))
                                 : milliseconds(0);
  Clocks clocks{floor<seconds>(answer.server_now + since), floor<seconds>(answered), std::nullopt};
  if (answer.exact) {
    // min before max: the laptop's clock may have been set back meanwhile
    const milliseconds most = answer.server_now - asked;
    clocks.ahead = std::max(answer.server_now + since - answered, std::min(milliseconds(0), most));
  }
  return clocks;
}

std::optional<ExactInstant> failure_moment(const StatusReply& reply) {
  const std::optional<ExactInstant> end = exact_end(reply);
  if (!end) {
    return std::nullopt;
  }
  if (reply.stop_signal) {
    return std::min(reply.stopped_at, *end);
  }
  if (reply.raised_at && *reply.raised_at <= *end) {
    return reply.raised_at;
  }
  const bool last_words = reply.wrote_at && reply.err_size > 0 && reply.end->status.shell_code() <= 128 &&
                          *reply.wrote_at <= *end && soon_after_last_words(reply);
  return last_words ? reply.wrote_at : end;
}

namespace {

// `fresh`, which is `job` so far, in the phase of its server's answer.
void apply_phase(Job& fresh, const Job& job, const StatusReply& reply, const Clocks& clocks,
                 Starter starter) {
  using Phase = StatusReply::Phase;
  switch (reply.phase) {
    case Phase::none:
      if (job.state == JobState::running || job.state == JobState::queued) {
        lose(fresh, Kind::folder_gone);
      } else if (starter == Starter::dead) {
        lose(fresh, Kind::never_started);
      }
      break;
    case Phase::starting:
      break;  // and a job that was seen running does not start again
    case Phase::queued:
      fresh.state = JobState::queued;
      fresh.pid.reset();
      fresh.started_at.reset();
      fresh.reason = {.kind = reply.reason.empty() ? Kind::none : Kind::waiting, .text = reply.reason};
      break;
    case Phase::unknown:
      fresh.state = JobState::unknown;
      fresh.reason = {.kind = Kind::other, .text = reply.reason};
      break;
    case Phase::running:
      fresh.state = JobState::running;
      fresh.result.reset();
      fresh.ended_at.reset();
      fresh.failed_at =
          clocks.ahead && reply.wrote_at
              ? std::optional(std::max<ExactInstant>(*reply.wrote_at - *clocks.ahead, job.created_at))
              : std::nullopt;
      // Under Slurm each rank has an output of its own.
      fresh.wrote_nothing = reply.out_size + reply.err_size == 0 && fresh.backend != slurm_backend;
      fresh.after_peer = false;
      fresh.reason = running_reason(reply);
      break;
    case Phase::ended:
      fresh.ended_at =
          shifted(reply.end && reply.end->at ? std::optional(floor<seconds>(*reply.end->at)) : std::nullopt,
                  clocks, job.ended_at, fresh.started_at.value_or(job.created_at));
      apply_end(fresh, reply);
      // Where that could not be seen, it is asked about again.
      fresh.leftovers = reply.unseen ? 0 : reply.leftovers;
      fresh.usage = reply.usage;
      fresh.failed_at = shifted_failure(fresh, reply, clocks);
      break;
    case Phase::gone:
      lose(fresh, Kind::processes_gone, reply.reason);
      break;
    case Phase::rebooted:
      lose(fresh, Kind::server_restarted);
      break;
  }
}

}  // namespace

Job apply_status(const Job& job, const StatusReply& reply, const Clocks& clocks, Starter starter) {
  if (is_final(job.state) && job.state != JobState::lost) {
    return with_news_of_end(job, reply, clocks);
  }
  using Phase = StatusReply::Phase;
  const bool says_nothing_new = reply.phase == Phase::none || reply.phase == Phase::starting ||
                                reply.phase == Phase::gone || reply.phase == Phase::rebooted ||
                                reply.phase == Phase::unknown;
  if (job.state == JobState::lost && says_nothing_new) {
    return job;
  }
  // No server need have a folder of a point whose turn has not come.
  if (job.point && job.point->waiting && (reply.phase == Phase::none || reply.phase == Phase::starting)) {
    return job;
  }
  Job fresh = job;
  fresh.checked_at = clocks.local;
  if (fresh.point) {
    fresh.point->waiting = false;
  }
  if (!fresh.backend && reply.phase != Phase::none) {
    fresh.backend = reply.backend;
  }
  fresh.waits = reply.waits;
  fresh.attempts = shifted_attempts(job, reply, clocks);
  if (reply.hung) {
    fresh.hung = reply.hung;
    const auto stored_at = job.hung ? std::optional(job.hung->at) : std::nullopt;
    fresh.hung->at = *shifted(reply.hung->at, clocks, stored_at, job.created_at);
    if (reply.hung->moved_at) {
      const auto stored_moved = job.hung ? job.hung->moved_at : std::nullopt;
      fresh.hung->moved_at = shifted(reply.hung->moved_at, clocks, stored_moved, fresh.hung->at);
    }
  }
  if (reply.pid) {
    fresh.pid = reply.pid;
  }
  fresh.started_at = shifted(reply.started_at, clocks, job.started_at, job.created_at);
  // Slurm may start a job again. Where any other seems to have started later than it did, the server's clock
  // was set back.
  if (job.started_at && fresh.backend != slurm_backend) {
    fresh.started_at = std::min(fresh.started_at, job.started_at);
  }
  apply_phase(fresh, job, reply, clocks, starter);
  return fresh;
}

Job as_unanswered(const Job& job, Instant now) {
  if (is_final(job.state)) {
    return job;
  }
  Job shown = job;
  shown.state = JobState::unknown;
  shown.reason = {.kind = Kind::no_answer};
  if (job.checked_at) {
    shown.reason.number =
        static_cast<int>(std::clamp<std::int64_t>((now - *job.checked_at).count(), 0, INT_MAX));
    shown.reason.last_state = job.state;
  }
  return shown;
}

Job merge_news(const Job& stored, const Job& news, Instant now) {
  const bool comparable = stored.checked_at && *stored.checked_at <= now;
  const bool later = news.checked_at && (!comparable || *news.checked_at > *stored.checked_at);
  const bool older =
      stored.checked_at && (!news.checked_at || (comparable && *news.checked_at < *stored.checked_at));
  const bool leaves_lost = stored.state == JobState::lost && news.state != JobState::lost &&
                           news.state != JobState::starting && later;
  const bool keep = news.state == JobState::unknown || (is_final(stored.state) && !leaves_lost) || older ||
                    (stored.state == JobState::running && news.state == JobState::starting);
  if (keep) {
    Job kept = stored;
    if (is_final(stored.state) && is_final(news.state) && !older) {
      kept.leftovers = news.leftovers;
      kept.usage = news.usage ? news.usage : stored.usage;
      kept.point = news.point && !news.point->numbers.empty() ? news.point : stored.point;
    }
    return kept;
  }
  Job merged = news;
  merged.key = stored.key;
  merged.id = stored.id;
  merged.created_at = stored.created_at;
  return merged;
}

}  // namespace remote::jobs
