#include "jobs/refresh.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/clock.hpp"

namespace remote::jobs {
namespace {

constexpr int sigkill = 9;

// A server's instant on the laptop's clock. Both clocks are read in whole seconds, so the same instant comes
// out a second earlier or later from one answer to the next: a stored value that is as near as that stays.
std::optional<std::int64_t> shifted(const std::optional<std::int64_t>& server_time, const Clocks& clocks,
                                    const std::optional<std::int64_t>& stored, std::int64_t not_before) {
  if (!server_time) {
    return stored;
  }
  constexpr std::int64_t jitter = 2;
  const std::int64_t time =
      std::max(not_before, std::min(*server_time + clocks.local - clocks.server, clocks.local));
  return stored && std::abs(*stored - time) <= jitter ? stored : time;
}

// failure_moment() on the laptop's clock, of a job that has failed or was killed.
std::optional<std::int64_t> shifted_failure(const Job& job, const StatusReply& reply, const Clocks& clocks) {
  const std::optional<std::int64_t> moment = failure_moment(reply);
  if (!moment || !clocks.ahead_ms || job.state == State::succeeded) {
    return std::nullopt;
  }
  return std::clamp(*moment - *clocks.ahead_ms, job.created_at * 1000,
                    std::max(job.created_at, clocks.local + 1) * 1000);
}

std::string stop_reason(const StatusReply& reply) {
  // by the launch itself: see lifeline.py
  if (reply.stop_by.starts_with("rank ")) {
    return "ended after " + reply.stop_by;
  }
  if (reply.stop_by.starts_with("loss of ")) {
    return "ended after the " + reply.stop_by;
  }
  std::string reason = signal_name(*reply.stop_signal);
  if (!reply.stop_by.empty()) {
    reason += " by " + reply.stop_by;
  }
  // What the job itself made of the signal, where that is something else.
  if (*reply.result != ExitStatus::signalled(*reply.stop_signal)) {
    reason += reply.result->signal() ? ", then " : ", ";
    reason += reply.result->describe();
  }
  return reason;
}

// The words of status.sh, whose blanks are '+': "unreachable:+node-1+at+10.0.0.4:23456:+No+route+to+host".
std::string lifeline_trouble(std::string text) {
  std::replace(text.begin(), text.end(), '+', ' ');
  constexpr std::string_view unreachable = "unreachable: ";
  if (text.starts_with(unreachable)) {
    text = "cannot reach " + text.substr(unreachable.size());
  }
  return std::string(no_lifeline) + ": " + text;
}

std::string running_reason(const StatusReply& reply) {
  if (reply.left) {
    return fmt::format("told to end, but its process {} is not gone", reply.pid.value_or(0));
  }
  if (!reply.supervised) {
    return "its supervisor is gone";
  }
  return reply.lifeline.empty() ? "" : lifeline_trouble(reply.lifeline);
}

void apply_end(Job& job, const StatusReply& reply) {
  job.reason.clear();
  if (!reply.result) {
    job.state = State::lost;
    job.result.reset();
    job.reason = "ended without a result";
    return;
  }
  job.result = reply.result;
  if (reply.stop_signal) {
    job.state = State::killed;
    if (!reply.result->signal()) {
      job.result = ExitStatus::signalled(*reply.stop_signal);
    }
    job.reason = stop_reason(reply);
    return;
  }
  if (reply.result->success()) {
    job.state = State::succeeded;
    return;
  }
  job.state = State::failed;
  if (reply.oom) {
    // 137 is how a shell reports a child that SIGKILL ended.
    job.reason = reply.result->shell_code() == 128 + sigkill ? "out of memory"
                                                             : "the server ran out of memory meanwhile";
  }
}

void lose(Job& job, std::string reason) {
  job.state = State::lost;
  job.reason = std::move(reason);
  job.result.reset();
}

}  // namespace

Clocks clocks_of(const StatusAnswer& answer, std::int64_t asked_ms, std::int64_t answered_ms) {
  Clocks clocks{answer.server_now, answered_ms / 1000, std::nullopt};
  if (answer.server_now_ms) {
    // min before max: the laptop's clock may have been set back meanwhile
    const std::int64_t most = *answer.server_now_ms - asked_ms;
    clocks.ahead_ms = std::max(*answer.server_now_ms - answered_ms, std::min<std::int64_t>(0, most));
  }
  return clocks;
}

std::optional<std::int64_t> failure_moment(const StatusReply& reply) {
  constexpr std::int64_t longest_exit = 10000;
  // The server's clock was read just before the result was written: this is how far apart the two may be.
  constexpr std::int64_t agree_s = 2;
  if (!reply.done_ms || !reply.ended_at || !reply.result ||
      std::abs(*reply.done_ms / 1000 - *reply.ended_at) > agree_s) {
    return std::nullopt;
  }
  const bool last_words = reply.wrote_ms && reply.err_size > 0 && reply.result->shell_code() <= 128 &&
                          *reply.wrote_ms <= *reply.done_ms &&
                          *reply.done_ms - *reply.wrote_ms <= longest_exit;
  return last_words ? reply.wrote_ms : reply.done_ms;
}

Job apply_status(const Job& job, const StatusReply& reply, const Clocks& clocks, Starter starter) {
  if (is_final(job.state) && job.state != State::lost) {
    return job;
  }
  using Phase = StatusReply::Phase;
  const bool says_nothing_new = reply.phase == Phase::none || reply.phase == Phase::starting ||
                                reply.phase == Phase::gone || reply.phase == Phase::rebooted;
  if (job.state == State::lost && says_nothing_new) {
    return job;
  }
  Job fresh = job;
  fresh.checked_at = clocks.local;
  if (reply.pid) {
    fresh.pid = reply.pid;
  }
  fresh.started_at = shifted(reply.started_at, clocks, job.started_at, job.created_at);
  switch (reply.phase) {
    case Phase::none:
      if (job.state == State::running) {
        lose(fresh, "its folder is gone from the server");
      } else if (starter == Starter::dead) {
        lose(fresh, "never started");
      }
      break;
    case Phase::queued:
    case Phase::unknown:
      break;
    case Phase::starting:
      break;  // and a job that was seen running does not start again
    case Phase::running:
      fresh.state = State::running;
      fresh.result.reset();
      fresh.ended_at.reset();
      fresh.failed_ms.reset();
      fresh.reason = running_reason(reply);
      break;
    case Phase::ended:
      fresh.ended_at =
          shifted(reply.ended_at, clocks, job.ended_at, fresh.started_at.value_or(job.created_at));
      apply_end(fresh, reply);
      fresh.failed_ms = shifted_failure(fresh, reply, clocks);
      break;
    case Phase::gone:
      lose(fresh, "supervisor and processes are gone");
      break;
    case Phase::rebooted:
      lose(fresh, "server restarted");
      break;
  }
  return fresh;
}

Job as_unanswered(const Job& job, std::int64_t now) {
  if (is_final(job.state)) {
    return job;
  }
  Job shown = job;
  shown.state = State::unknown;
  shown.reason = job.checked_at ? fmt::format("no answer; last news {} ago: {}",
                                              format_duration(now - *job.checked_at), to_string(job.state))
                                : "no answer, and no news yet";
  return shown;
}

Job merge_news(const Job& stored, const Job& news) {
  Job merged = news;
  merged.key = stored.key;
  merged.id = stored.id;
  merged.created_at = stored.created_at;

  const bool later = news.checked_at && (!stored.checked_at || *news.checked_at > *stored.checked_at);
  const bool older = stored.checked_at && (!news.checked_at || *news.checked_at < *stored.checked_at);
  const bool leaves_lost =
      stored.state == State::lost && news.state != State::lost && news.state != State::starting && later;
  const bool keep = news.state == State::unknown || (is_final(stored.state) && !leaves_lost) || older ||
                    (stored.state == State::running && news.state == State::starting);
  if (keep) {
    merged.state = stored.state;
    merged.pid = stored.pid;
    merged.result = stored.result;
    merged.reason = stored.reason;
    merged.started_at = stored.started_at;
    merged.ended_at = stored.ended_at;
    merged.checked_at = stored.checked_at;
    merged.failed_ms = stored.failed_ms;
  }
  return merged;
}

}  // namespace remote::jobs
