#include "jobs/transitions.hpp"

#include <algorithm>
#include <climits>
#include <string>

#include "jobs/backend_names.hpp"
#include "jobs/from_wire.hpp"

namespace remote::jobs {
namespace {

using std::chrono::floor;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = JobReason::Kind;

constexpr int sigkill = 9;

std::optional<Instant> to_second(const std::optional<wire::Moment>& moment) {
  return moment ? std::optional(floor<seconds>(to_instant(*moment))) : std::nullopt;
}

// Converts a server's time to the laptop's clock. Both clocks are read in whole seconds, so the result varies
// by a second between answers. A stored value that is close enough is kept.
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

// failure_moment() by the laptop's clock, for a job that failed or was killed.
std::optional<ExactInstant> shifted_failure(const Job& job, const wire::JobReport& report,
                                            const Clocks& clocks) {
  const std::optional<ExactInstant> moment = failure_moment(report);
  if (!moment || !clocks.ahead || job.state == JobState::succeeded) {
    return std::nullopt;
  }
  return std::clamp<ExactInstant>(*moment - *clocks.ahead, job.created_at,
                                  std::max(job.created_at, clocks.local + seconds(1)));
}

JobReason stop_reason(const wire::JobReport& report) {
  JobReason reason = to_reason(report.stop->by);
  if (reason.kind == Kind::by_user || reason.kind == Kind::by_launch) {
    reason.number = report.stop->signal;
    if (report.end->how != wire::ProcessEnd::signalled(report.stop->signal)) {
      reason.result = report.end->how.status();
    }
  }
  return reason;
}

JobReason running_reason(const wire::JobReport& report) {
  if (report.left) {
    return {.kind = Kind::told_to_end, .number = report.pid.value_or(0)};
  }
  if (!report.supervised) {
    return {.kind = Kind::unsupervised};
  }
  if (!report.reason.empty()) {
    return {.kind = Kind::other, .text = report.reason};
  }
  return report.lifeline ? to_reason(*report.lifeline) : JobReason();
}

// `text` is the scheduler's message, which becomes the reason.
void lose(Job& job, Kind why, const std::string& text = "") {
  job.state = JobState::lost;
  job.reason = text.empty() ? JobReason{.kind = why} : JobReason{.kind = Kind::by_scheduler, .text = text};
  job.result.reset();
  job.failed_at
      .reset();  // this was the time of the last output while the job ran; it is unknown when it was lost
}

// nullopt if only the second is known. On Slurm's nodes, busybox's `date` may have recorded it, which has no
// milliseconds.
std::optional<ExactInstant> exact_end(const wire::JobReport& report) {
  const bool is_exact = report.end && report.end->by != "-" && report.end->at &&
                        *report.end->at % seconds(1) != milliseconds(0);
  return is_exact ? std::optional(to_instant(*report.end->at)) : std::nullopt;
}

// Whether its last lines on stderr can be related to its end; true if their time is unknown.
bool soon_after_last_words(const wire::JobReport& report) {
  constexpr seconds longest_exit{10};
  const std::optional<ExactInstant> end = exact_end(report);
  return !report.wrote_at || !end || *end - to_instant(*report.wrote_at) <= longest_exit;
}

Kind to_kind(FolderFlaw flaw) {
  switch (flaw) {
    case FolderFlaw::full:
      return Kind::disk_full;
    case FolderFlaw::quota:
      return Kind::quota_used_up;
    case FolderFlaw::read_only:
      return Kind::disk_read_only;
    default:
      return Kind::none;
  }
}

void apply_end(Job& job, const wire::JobReport& report) {
  job.reason = {};
  if (!report.end) {
    lose(job, Kind::no_result);
    return;
  }
  const ExitStatus result = report.end->how.status();
  job.result = result;
  if (report.stop) {
    job.state = JobState::killed;
    if (!result.signal()) {
      job.result = ExitStatus::signalled(report.stop->signal);
    }
    job.reason = stop_reason(report);
    return;
  }
  if (result.success() && is_idle(job)) {
    job.state = JobState::killed;
    job.result.reset();
    job.reason.kind = Kind::not_needed;
    return;
  }
  if (result.success()) {
    job.state = JobState::succeeded;
    return;
  }
  job.state = JobState::failed;
  // A missing peer does not cause SIGKILL.
  job.after_peer = report.after_peer && result.shell_code() != 128 + sigkill && soon_after_last_words(report);
  if (!report.reason.empty()) {
    job.reason = {.kind = report.backend == local_backend ? Kind::other : Kind::by_scheduler,
                  .text = report.reason};
  } else if (report.oom) {
    // A shell reports a child killed by SIGKILL as 137.
    job.reason.kind = result.shell_code() == 128 + sigkill ? Kind::out_of_memory : Kind::server_out_of_memory;
  } else {
    job.reason.kind = to_kind(report.disk);
  }
}

// Empty if the accounting has no data, so that it is not queried again.
std::optional<JobUsage> usage_of(const wire::JobReport& report) {
  return report.usage || !report.usage_asked ? report.usage : JobUsage();
}

// Updates a job that has ended: only its leftovers and its usage can change.
Job with_news_of_end(const Job& job, const wire::JobReport& report, const Clocks& clocks) {
  using Phase = wire::JobPhase;
  // `left`: a process that survived a kill
  const std::optional<int> left = report.left ? 1 : report.leftovers;
  const bool tells =
      !report.unseen && (report.left || report.phase == Phase::ended || report.phase == Phase::none);
  const std::optional<JobUsage> usage = usage_of(report);
  const bool used = usage && !job.usage;
  if ((left == job.leftovers || !tells) && !used) {
    return job;
  }
  Job fresh = job;
  fresh.leftovers = tells ? left : job.leftovers;
  fresh.usage = used ? usage : job.usage;
  fresh.checked_at = clocks.local;
  return fresh;
}

// The attempts before the current one, in this machine's time. An answer without attempts does not change
// them.
std::vector<Attempt> shifted_attempts(const Job& job, const wire::JobReport& report, const Clocks& clocks) {
  std::vector<Attempt> attempts = job.attempts;  // converting them again would shift them by a second
  for (std::size_t i = attempts.size(); i < report.attempts.size(); ++i) {
    Attempt& attempt = attempts.emplace_back(to_attempt(report.attempts[i]));
    for (Instant* at : {&attempt.began_at, &attempt.failed_at, &attempt.next_at}) {
      *at += clocks.local - clocks.server;
    }
  }
  return attempts;
}

}  // namespace

Clocks clocks_of(const ServerTime& time, ExactInstant asked, ExactInstant answered) {
  // The server read its clock between the question and its first message.
  // Use min before max, because the laptop's clock can be set back meanwhile.
  const milliseconds most = time.now - asked;
  const ExactInstant heard_at = std::min(time.heard_at, answered);
  const milliseconds ahead = std::max(time.now - heard_at, std::min(milliseconds(0), most));
  return {floor<seconds>(answered + ahead), floor<seconds>(answered), ahead};
}

std::optional<ExactInstant> failure_moment(const wire::JobReport& report) {
  const std::optional<ExactInstant> end = exact_end(report);
  if (!end) {
    return std::nullopt;
  }
  if (report.stop) {
    return std::min(to_instant(report.stop->at), *end);
  }
  if (report.raised_at && to_instant(*report.raised_at) <= *end) {
    return to_instant(*report.raised_at);
  }
  const bool has_last_words = report.wrote_at && report.err_size > 0 &&
                              report.end->how.status().shell_code() <= 128 &&
                              to_instant(*report.wrote_at) <= *end && soon_after_last_words(report);
  return has_last_words ? to_instant(*report.wrote_at) : *end;
}

namespace {

// Whether the report is from another machine than the one that runs the job.
bool is_of_other_machine(const Job& job, const wire::JobReport& report) {
  return job.machine && !report.machine.empty() && report.machine != *job.machine;
}

// The machine that answered does not know the job's state.
void make_unknown(Job& fresh, const Job& job, const wire::JobReport& report) {
  fresh.state = JobState::unknown;
  fresh.reason = is_of_other_machine(job, report) ? JobReason{.kind = Kind::other_machine}
                                                  : JobReason{.kind = Kind::other, .text = report.reason};
}

// Applies the phase that the server reported to `fresh`. `job` is the job before the answer.
void apply_phase(Job& fresh, const Job& job, const wire::JobReport& report, const Clocks& clocks,
                 Starter starter) {
  using Phase = wire::JobPhase;
  switch (report.phase) {
    case Phase::none:
      if (job.state == JobState::running || job.state == JobState::queued) {
        if (is_of_other_machine(job, report)) {
          make_unknown(fresh, job, report);
        } else {
          lose(fresh, Kind::folder_gone);
        }
      } else if (starter == Starter::dead) {
        lose(fresh, Kind::never_started);
      }
      break;
    case Phase::starting:
      break;  // a job that was seen running does not start again
    case Phase::queued:
      fresh.state = JobState::queued;
      fresh.pid.reset();
      fresh.started_at.reset();
      fresh.reason = {.kind = report.reason.empty() ? Kind::none : Kind::waiting, .text = report.reason};
      break;
    case Phase::unknown:
      make_unknown(fresh, job, report);
      break;
    case Phase::running:
      fresh.state = JobState::running;
      fresh.result.reset();
      fresh.ended_at.reset();
      fresh.failed_at = clocks.ahead && report.wrote_at
                            ? std::optional(std::max<ExactInstant>(
                                  to_instant(*report.wrote_at) - *clocks.ahead, job.created_at))
                            : std::nullopt;
      // Under Slurm, each rank has its own output.
      fresh.wrote_nothing = report.out_size + report.err_size == 0 && fresh.backend != slurm_backend;
      fresh.after_peer = false;
      fresh.reason = running_reason(report);
      break;
    case Phase::ended:
      fresh.ended_at = shifted(report.end ? to_second(report.end->at) : std::nullopt, clocks, job.ended_at,
                               fresh.started_at.value_or(job.created_at));
      apply_end(fresh, report);
      // If they are unknown, they are queried again.
      fresh.leftovers = report.unseen ? 0 : report.leftovers;
      fresh.usage = usage_of(report);
      fresh.failed_at = shifted_failure(fresh, report, clocks);
      break;
    case Phase::gone:
      lose(fresh, Kind::processes_gone, report.reason);
      break;
    case Phase::rebooted:
      lose(fresh, Kind::server_restarted);
      break;
  }
}

}  // namespace

Job apply_status(const Job& job, const wire::JobReport& report, const Clocks& clocks, Starter starter) {
  if (is_final(job.state) && job.state != JobState::lost) {
    return with_news_of_end(job, report, clocks);
  }
  using Phase = wire::JobPhase;
  const bool says_nothing_new = report.phase == Phase::none || report.phase == Phase::starting ||
                                report.phase == Phase::gone || report.phase == Phase::rebooted ||
                                report.phase == Phase::unknown;
  if (job.state == JobState::lost && says_nothing_new) {
    return job;
  }
  // A server may not have a folder yet for a waiting point, or never: the point may run on another server,
  // whose processes it can see if both are one machine.
  const bool has_no_folder = report.phase == Phase::none || report.phase == Phase::starting ||
                             (report.phase == Phase::running && !report.started_at);
  if (job.point && job.point->waiting && has_no_folder) {
    return job;
  }
  Job fresh = job;
  fresh.checked_at = clocks.local;
  if (fresh.point) {
    fresh.point->waiting = false;
  }
  if (!fresh.backend && report.phase != Phase::none) {
    fresh.backend = report.backend;
  }
  fresh.waits = report.waits;
  fresh.attempts = shifted_attempts(job, report, clocks);
  fresh.no_restart = report.no_restart ? report.no_restart : job.no_restart;
  if (report.hung) {
    const auto stored_at = job.hung ? std::optional(job.hung->at) : std::nullopt;
    Hung hung = to_hung(*report.hung);
    hung.at = *shifted(hung.at, clocks, stored_at, job.created_at);
    if (hung.moved_at) {
      hung.moved_at = shifted(hung.moved_at, clocks, job.hung ? job.hung->moved_at : std::nullopt, hung.at);
    }
    fresh.hung = hung;
  }
  if (report.pid) {
    fresh.pid = report.pid;
  }
  fresh.started_at = shifted(to_second(report.started_at), clocks, job.started_at, job.created_at);
  // Slurm can start a job again. If any other job seems to have started later than before, the server's clock
  // was set back.
  if (job.started_at && fresh.backend != slurm_backend) {
    fresh.started_at = std::min(fresh.started_at, job.started_at);
  }
  apply_phase(fresh, job, report, clocks, starter);
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
  merged.made_in = stored.made_in;
  merged.elsewhere = stored.elsewhere;
  return merged;
}

}  // namespace remote::jobs
