#include "jobs/kill.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/paths.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/protocol.hpp"
#include "jobs/refresh.hpp"
#include "jobs/transitions.hpp"

namespace remote::jobs {
namespace {

// A job that this kill has ended. Where its folder took no note of that, the server knows only that it is
// gone, and where that cannot be seen, not even that.
Job as_killed(const Job& before, Job now, const KillRequest& order) {
  if (is_final(before.state) ||
      (now.state != JobState::lost && now.state != JobState::failed && now.state != JobState::unknown)) {
    return now;
  }
  StatusReply told;
  told.phase = StatusReply::Phase::ended;
  told.end = {.status = now.result.value_or(ExitStatus::signalled(order.signal))};
  told.stop_signal = order.signal;
  told.stop_by = order.by;
  const Instant moment = now_seconds();
  Job job = apply_status(before, told, {moment, moment, std::nullopt}, Starter::alive);
  job.ended_at = now.ended_at.value_or(moment);
  job.leftovers = now.leftovers;
  return job;
}

std::vector<KillResult::Entry> kill_on(ssh::Connection& connection, const Store& store, const JobsAt& place,
                                       const KillRequest& order, const Cancel& cancel) {
  std::vector<JobId> claim;  // those that may not have started yet
  std::vector<JobId> dead;   // and of these, those that nobody starts any more
  for (const Job& job : place.jobs) {
    if (job.state == JobState::starting) {
      claim.push_back(job.id);
    }
    if (start_is_dead(store, job)) {
      dead.push_back(job.id);
    }
  }
  const ExactInstant asked = now_milliseconds();
  const KillOrder as_sent{order.signal, static_cast<int>(order.grace.count()), by_word(order.by)};
  const KillAnswer answer =
      servers::run_action(connection, kill_action(place.folder, place.ids(), as_sent, claim, dead), cancel);
  const Clocks clocks = clocks_of(answer.status, asked, now_milliseconds());
  std::vector<KillResult::Entry> entries;
  for (Job job : place.jobs) {
    const KillReply* reply = reply_about(job.id, answer.jobs);
    if (reply == nullptr) {
      throw Error("cannot tell whether the job ended", "the server's answer does not name it")
          .mended_by(Remedy::list_jobs);
    }
    if (auto now = as_told(connection, job, answer.status, clocks, dead, cancel)) {
      job = *std::move(now);
    }
    // What is not there any more, but once ran there, was started.
    const bool ran = reply->outcome == KillReply::Outcome::none && job.started_at.has_value();
    if (reply->outcome == KillReply::Outcome::killed) {
      const Job& before = *std::ranges::find(place.jobs, job.id, &Job::id);
      job = as_killed(before, std::move(job), order);
    }
    entries.push_back({job, ran ? KillReply::Outcome::ended : reply->outcome, reply->signalled,
                       reply->survivors, reply->reason, reply->suspects});
  }
  return entries;
}

std::vector<CleanResult::Entry> clean_on(ssh::Connection& connection, Store& store, const JobsAt& place,
                                         const Cancel& cancel) {
  const CleanAnswer answer = servers::run_action(connection, clean_action(place.folder, place.ids()), cancel);
  std::vector<CleanResult::Entry> entries;
  std::vector<JobId> gone;
  for (const Job& job : place.jobs) {
    const CleanReply* reply = reply_about(job.id, answer.jobs);
    if (reply == nullptr) {
      entries.push_back({job, false, "the server's answer does not name it"});
      continue;
    }
    if (reply->gone()) {
      gone.push_back(job.id);
    }
    entries.push_back({job, reply->gone(), reply->reason});
  }
  try {
    store.remove(gone);
  } catch (const Error& error) {
    for (CleanResult::Entry& entry : entries) {
      if (entry.removed && is_there(store.record_file(entry.job.id))) {
        entry.removed = false;
        entry.reason = "its files on the server are removed, its record here is not: " + error.message();
      }
    }
  }
  return entries;
}

}  // namespace

KillResult kill(const Site& site, const std::vector<Job>& jobs, const KillRequest& order,
                ssh::ConnectLimit limit, std::optional<Error>* unsaved) {
  KillResult result;
  result.entries = on_job_servers(
      site, jobs, result.errors,
      [&](ssh::Connection& connection, const JobsAt& place) {
        return kill_on(connection, site.store, place, order, site.cancel);
      },
      limit);
  std::vector<Job> now;
  std::ranges::transform(result.entries, std::back_inserter(now), &KillResult::Entry::job);
  const std::optional<Error> problem = save(site.store, now);
  if (unsaved != nullptr) {
    *unsaved = problem;
  }
  return result;
}

CleanResult clean(const Site& site, const std::vector<Job>& jobs) {
  CleanResult result;
  result.entries =
      on_job_servers(site, jobs, result.errors, [&](ssh::Connection& connection, const JobsAt& place) {
        return clean_on(connection, site.store, place, site.cancel);
      });
  return result;
}

}  // namespace remote::jobs
