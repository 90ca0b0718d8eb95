#include "jobs/kill.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <set>
#include <string>

#include "base/clock.hpp"
#include "base/paths.hpp"
#include "jobs/ask.hpp"
#include "jobs/from_wire.hpp"
#include "jobs/job_json.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/refresh.hpp"
#include "jobs/transitions.hpp"

namespace remote::jobs {
namespace {

using Outcome = KillResult::Entry::Outcome;

// Corrects the state of a job that this kill stopped. If the end was not recorded in its folder, the server
// can only report that the job is gone, or unknown.
Job as_killed(const Job& before, Job now, const KillRequest& order) {
  if (is_final(before.state) ||
      (now.state != JobState::lost && now.state != JobState::failed && now.state != JobState::unknown)) {
    return now;
  }
  wire::JobReport told;
  told.phase = wire::JobPhase::ended;
  told.end.emplace();
  told.end->how = now.result ? to_process_end(*now.result) : wire::ProcessEnd::signalled(order.signal);
  told.stop = {.signal = order.signal, .by = to_stopped_by(order.by)};
  const Instant moment = now_seconds();
  Job job = apply_status(before, told, {moment, moment, std::nullopt}, Starter::alive);
  job.ended_at = now.ended_at.value_or(moment);
  job.leftovers = now.leftovers;
  return job;
}

std::vector<KillResult::Entry> kill_on(ssh::Connection& connection, const Store& store, const JobsAt& place,
                                       const KillRequest& order, const Cancel& cancel) {
  StopQuestion question{.folder = place.folder, .ids = place.ids()};
  question.signal = order.signal;
  question.grace_s = static_cast<int>(order.grace.count());
  question.by = order.by;
  for (const Job& job : place.jobs) {
    if (job.state == JobState::starting) {
      question.claim.push_back(job.id);
    }
    if (start_is_dead(store, job)) {
      question.dead.push_back(job.id);
    }
  }
  const AnyAgent agent(connection, cancel);
  const ExactInstant asked = now_milliseconds();
  const StopAnswer answer = ask_stop(agent, question);
  const Clocks clocks = clocks_of(answer.state.time.value(), asked, now_milliseconds());
  std::vector<KillResult::Entry> entries;
  for (Job job : place.jobs) {
    const auto found = answer.results.find(job.id);
    if (found == answer.results.end()) {
      throw Error("cannot determine whether the job ended", "the server's answer does not name it")
          .mended_by(Remedy::list_jobs);
    }
    const wire::StopResult& result = found->second;
    if (auto now = as_told(agent, job, answer.state, clocks, question.dead)) {
      job = *std::move(now);
    }
    KillResult::Entry entry{job, result.outcome, result.signalled, {}, result.reason, {}};
    if (result.outcome == Outcome::none && job.reason.kind == JobReason::Kind::other_machine) {
      entry.outcome = Outcome::refused;
      entry.reason = reason_text(job.reason);
    } else if (result.outcome == Outcome::none && job.started_at) {
      entry.outcome = Outcome::ended;  // a job that ran before but is missing now was started
    }
    if (result.outcome == Outcome::killed) {
      const Job& before = *std::ranges::find(place.jobs, job.id, &Job::id);
      entry.job = as_killed(before, std::move(job), order);
    }
    std::ranges::transform(result.survivors, std::back_inserter(entry.survivors), describe);
    std::ranges::transform(result.suspects, std::back_inserter(entry.suspects), describe_suspect);
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Queries the states of jobs whose answers are missing. Finished jobs become entries too.
void ask_again(const Site& site, const std::vector<Job>& jobs, const std::set<std::string>& servers,
               KillResult& result) {
  constexpr std::chrono::seconds patience{3};
  const auto is_answered = [&](const Job& job) {
    return std::ranges::any_of(result.entries, [&](const auto& entry) { return entry.job.id == job.id; });
  };
  std::vector<Job> unheard;
  std::ranges::copy_if(jobs, std::back_inserter(unheard),
                       [&](const Job& job) { return servers.contains(job.server) && !is_answered(job); });
  if (unheard.empty()) {
    return;
  }
  std::set<std::string> open;
  for (Job& job : refresh(site, std::move(unheard), patience).jobs) {
    if (is_over(job)) {
      KillResult::Entry& entry = result.entries.emplace_back();
      entry.outcome = job.state == JobState::killed ? Outcome::killed : Outcome::ended;
      entry.job = std::move(job);
    } else {
      open.insert(job.server);
    }
  }
  std::erase_if(result.errors, [&](const Error& error) {
    return servers.contains(error.server()) && !open.contains(error.server());
  });
  std::ranges::stable_sort(result.entries, {}, [](const auto& entry) { return entry.job.key; });
}

std::vector<CleanResult::Entry> clean_on(ssh::Connection& connection, Store& store, const JobsAt& place,
                                         const Cancel& cancel) {
  const CleanAnswer answer = ask_clean({connection, cancel}, place.folder, place.ids());
  std::vector<CleanResult::Entry> entries;
  std::vector<JobId> gone;
  for (const Job& job : place.jobs) {
    const auto found = answer.find(job.id);
    if (found == answer.end()) {
      entries.push_back({job, false, "the server's answer does not name it"});
      continue;
    }
    const bool removed = is_removed(found->second.outcome);
    if (removed) {
      gone.push_back(job.id);
    }
    entries.push_back({job, removed, found->second.reason});
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
  std::mutex mutex;
  std::set<std::string> unsure;  // servers that received the request but did not answer
  result.entries = on_job_servers(
      site, jobs, result.errors,
      [&](ssh::Connection& connection, const JobsAt& place) {
        try {
          return kill_on(connection, site.store, place, order, site.cancel);
        } catch (const Error&) {
          const std::lock_guard lock(mutex);
          unsure.insert(place.jobs.front().server);
          throw;
        }
      },
      limit);
  ask_again(site, jobs, unsure, result);
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
