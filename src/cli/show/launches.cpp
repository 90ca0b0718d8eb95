#include "cli/show/launches.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <remote/verdict.hpp>

#include "base/clock.hpp"
#include "base/ranges.hpp"
#include "base/strings.hpp"
#include "cli/show/gpus.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/sweeps.hpp"
#include "cli/show/verdict.hpp"
#include "jobs/job_json.hpp"

namespace remote::cli {
namespace {

constexpr std::size_t most_servers = 3;

const Job* with_state(const Batch& batch, JobState state) {
  const auto found = std::ranges::find(batch, state, &Job::state);
  return found == batch.end() ? nullptr : &*found;
}

// The state without leftover processes: left_text() counts those of all jobs in the launch.
std::string ended_text(Job job) {
  job.leftovers.reset();
  return state_text(job);
}

// Ignores how each process reacted to the signal.
std::string killed_text(Job job) {
  job.reason.result.reset();
  return ended_text(std::move(job));
}

// The state of a launch that has ended without a failed rank.
std::string peaceful_end(const Batch& batch) {
  std::set<std::string> killed;
  int succeeded = 0;
  int others = 0;
  for (const Job& job : batch) {
    if (is_idle(job)) {
      continue;
    }
    if (job.state == JobState::succeeded) {
      succeeded += ranks_of(job);
    } else {
      others += ranks_of(job);
      killed.insert(killed_text(job));
    }
  }
  if (killed.empty()) {
    return "succeeded";
  }
  const std::string how = killed.size() == 1 ? *killed.begin() : "killed";
  return succeeded == 0 ? how : fmt::format("{} succeeded, {} {}", succeeded, others, how);
}

// The current problem; "" if there is none.
std::string trouble(const Batch& batch) {
  const Verdict verdict = verdict_of(batch);
  if (verdict.first) {
    const std::string node = failed_node(*verdict.first);
    return fmt::format("{} {}{}", rank_text(*verdict.first), node.empty() ? "" : "on " + node + " ",
                       ended_text(*verdict.first));
  }
  if (verdict.killed_first && verdict.aborted > 0) {
    const std::string how = killed_text(*verdict.killed_first);
    return verdict.killed > 0 ? how : fmt::format("{} {}", rank_text(*verdict.killed_first), how);
  }
  if (verdict.hung) {
    return jobs::reason_text(verdict.hung->reason);
  }
  return verdict.lost_server.empty() ? "" : "ended after the loss of " + verdict.lost_server;
}

// The current attempt of a launch that was restarted; "" for the first one.
std::string attempt_of(const Batch& batch) {
  const auto found = std::ranges::find_if(batch, [](const Job& job) { return !job.attempts.empty(); });
  return found == batch.end() ? "" : fmt::format(", attempt {}", found->attempts.back().number + 1);
}

}  // namespace

std::vector<Batch> by_launch(const std::vector<Job>& jobs) {
  std::vector<Batch> batches;
  std::map<JobId, std::size_t> places;
  for (const Job& job : jobs) {
    if (!job.launch) {
      batches.push_back({job});
      continue;
    }
    const auto [place, is_new] = places.emplace(*job.launch, batches.size());
    if (is_new) {
      batches.emplace_back();
    }
    batches[place->second].push_back(job);
  }
  return batches;
}

const Job& first_rank(const Batch& batch) {
  return *std::ranges::min_element(batch, {}, [](const Job& job) { return job.rank.value_or(0); });
}

std::string keys_of(const LaunchSummary& launch) {
  return launch.first_key == launch.last_key ? std::to_string(launch.first_key)
                                             : fmt::format("{}-{}", launch.first_key, launch.last_key);
}

std::vector<std::string> servers_of(const std::vector<Job>& jobs) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const Job& job : jobs) {
    if (seen.insert(job.server).second) {
      names.push_back(job.server);
    }
  }
  return names;
}

std::string server_names(const std::vector<Job>& jobs) {
  return server_names(servers_of(jobs));
}

std::string server_names(const std::vector<std::string>& names) {
  return names.size() <= most_servers ? join(names, ", ") : counted(names.size(), "server");
}

std::string describe(const std::vector<Job>& jobs) {
  if (jobs.size() == 1) {
    return describe(jobs.front());
  }
  std::vector<int> keys;
  std::vector<int> ranks;
  bool all_are_ranks = true;
  for (const Job& job : jobs) {
    keys.push_back(job.key);
    all_are_ranks = all_are_ranks && job.rank;
    for (int i = 0; job.rank && i < ranks_of(job); ++i) {
      ranks.push_back(*job.rank + i);
    }
  }
  const std::string where = "on " + server_names(jobs);
  return fmt::format("jobs {} ({})", ranges(std::move(keys)),
                     all_are_ranks ? fmt::format("ranks {} {}", ranges(std::move(ranks)), where) : where);
}

// For ended jobs: their leftover processes.
std::string left_text(const Batch& batch) {
  int left = 0;
  for (const Job& job : batch) {
    left += job.leftovers.value_or(0);
  }
  return left == 0 ? "" : fmt::format(" (ended, {} {} left)", left, left == 1 ? "process" : "processes");
}

bool has_ended(const Batch& batch) {
  return std::ranges::all_of(batch, [](const Job& job) { return is_final(job.state); });
}

bool is_over(const Batch& batch) {
  return std::ranges::all_of(batch, [](const Job& job) { return remote::is_over(job); });
}

static std::string state_of(const Batch& batch) {
  if (batch.size() == 1 && ranks_of(batch.front()) == 1 && !silence_of(batch)) {
    return state_text(batch.front());
  }
  if (batch.front().point) {
    return sweep_text(batch) + (has_ended(batch) ? left_text(batch) : "");
  }
  const std::string wrong = trouble(batch);
  if (const std::vector<std::string> left = verdict_of(batch).left; !left.empty()) {
    return "succeeded without " + join(left, ", ") + left_text(batch);
  }
  if (has_ended(batch)) {
    return (wrong.empty() ? peaceful_end(batch) : wrong) + left_text(batch);
  }
  std::string text;
  for (const JobState state : {JobState::running, JobState::starting, JobState::queued, JobState::unknown}) {
    const Job* job = with_state(batch, state);
    if (job != nullptr && text.empty()) {
      // prefer a job with a reason
      const auto odd = std::ranges::find_if(batch, [&](const Job& one) {
        return one.state == state &&
               (one.reason.kind != JobReason::Kind::none || !one.waits.empty() || still_since(one));
      });
      text = state_text(odd == batch.end() ? *job : *odd);
    }
  }
  if (const auto silent = silence_of(batch)) {
    text += ", silent for " + rough_duration(*silent);
  }
  return wrong.empty() ? text : text + "; " + wrong;
}

std::string elsewhere_text(const Batch& batch) {
  return std::ranges::any_of(batch, &Job::elsewhere) ? ", started from another folder" : "";
}

std::string state_text(const Batch& batch) {
  const std::string text = state_of(batch) + attempt_of(batch);
  const std::string elsewhere = elsewhere_text(batch);
  return text.ends_with(elsewhere) ? text : text + elsewhere;  // already included for a single job
}

std::string usage_text(const Batch& batch) {
  const JobUsage usage = batch.front().usage.value_or(JobUsage());
  if (batch.size() > 1 || usage.cpus == 0) {
    return "";
  }
  constexpr double mebi = 1024.0 * 1024.0;
  std::string text =
      fmt::format("used {}% of {}", usage.cpu_percent, counted(static_cast<std::size_t>(usage.cpus), "CPU"));
  if (usage.memory_mib > 0) {
    text += ", " + mebi_or_gibi(usage.memory_mib * mebi) +
            (usage.requested_mib > 0 ? " of " + mebi_or_gibi(usage.requested_mib * mebi) : "") + " memory";
  }
  return text;
}

std::optional<std::chrono::seconds> silence_of(const Batch& batch) {
  constexpr std::chrono::minutes long_one{2};
  Instant last;
  Instant seen;
  for (const Job& job : batch) {
    if (job.state == JobState::running) {
      if (!job.failed_at || !job.checked_at || !job.waits.empty()) {
        return std::nullopt;
      }
      last = std::max(last, std::chrono::floor<std::chrono::seconds>(*job.failed_at));
      seen = std::max(seen, *job.checked_at);
    }
  }
  return last > Instant() && seen - last >= long_one ? std::optional(seen - last) : std::nullopt;
}

std::string silence_notice(const Batch& batch) {
  const Job& job = first_rank(batch);
  const std::string who = fmt::format("{} {}", job.launch ? "launch" : "job", job.key);
  for (const Job& rank : batch) {
    if (const auto still = still_since(rank)) {
      return fmt::format("{0} has made no progress since {1}: remote job-why --{0}", who,
                         format_local_time(*still));
    }
  }
  const auto silent = silence_of(batch);
  return silent ? fmt::format("{0} has been silent for {1}: remote job-stacks --{0}", who,
                              format_duration(*silent))
                : "";
}

std::string rough_duration(std::chrono::seconds duration) {
  const std::string text = format_duration(duration);
  return text.substr(0, text.find(' '));
}

std::string age_of_output(const Job& job) {
  if (job.state == JobState::running && job.wrote_nothing) {
    return "never";
  }
  return job.state == JobState::running && job.failed_at && job.checked_at
             ? format_duration(std::chrono::ceil<std::chrono::seconds>(*job.checked_at - *job.failed_at)) +
                   " ago"
             : "";
}

std::string count_text(const Batch& batch) {
  std::map<std::string, int> counts;
  for (const Job& job : batch) {
    if (is_idle(job)) {
      continue;
    }
    counts[is_final(job.state) ? "ended" : std::string(to_string(job.state))] += ranks_of(job);
  }
  std::vector<std::string> parts;
  for (const char* name : {"running", "starting", "queued", "unknown", "ended"}) {
    if (const auto found = counts.find(name); found != counts.end()) {
      parts.push_back(fmt::format("{} {}", found->second, name));
    }
  }
  return join(parts, ", ");
}

Instant end_of(const Batch& batch) {
  Instant end;
  for (const Job& job : batch) {
    end = std::max(end, remote::end_of(job));
  }
  return end;
}

void Lines::add(const Job& job, const std::string& words) {
  const auto [place, is_new] = places_.emplace(std::pair(words, job.launch.value_or(job.id)), lines_.size());
  if (is_new) {
    lines_.emplace_back(words, std::vector<Job>());
  }
  lines_[place->second].second.push_back(job);
}

std::vector<std::string> Lines::text() const {
  std::vector<std::string> text;
  for (const auto& [words, jobs] : lines_) {
    text.push_back(fmt::format("{}: {}", describe(jobs), words));
  }
  return text;
}

EndTeller::EndTeller(ui::Terminal& terminal, const std::vector<Job>& jobs)
    : terminal_(terminal), one_launch_(std::ranges::all_of(jobs, [&](const Job& job) {
        return job.launch && job.launch == jobs.front().launch;
      })) {
  const bool is_over = one_launch_ && has_ended(jobs);
  for (const Job& job : jobs) {
    if (job.launch) {
      Launch& launch = launches_[*job.launch];
      ++launch.total;
      launch.failure_told = is_over;  // no ranks to wait for
    }
  }
}

void EndTeller::take(const Job& job) {
  const auto launch = job.launch ? launches_.find(*job.launch) : launches_.end();
  if (launch == launches_.end() || (launch->second.total == 1 && !one_launch_)) {
    terminal_.notice(fmt::format("{}: {}", describe(job), state_text(job)));
    return;
  }
  Launch& mine = launch->second;
  mine.ended.push_back(job);
  if (has_failed(job) && !job.after_peer && job.reason.kind != JobReason::Kind::after_rank &&
      !mine.failure_told && mine.total > 1) {
    mine.failure_told = true;
    // Another rank may have failed first: only the verdict names a rank.
    terminal_.notice(one_launch_ ? "a rank failed; waiting for the other ranks"
                                 : fmt::format("{}: {}", describe(job), state_text(job)));
  }
  if (mine.ended.size() == mine.total && !one_launch_) {
    tell(mine);
  }
}

void EndTeller::finish(bool judged, const std::vector<Job>& now) {
  for (auto& [id, launch] : launches_) {
    for (Job& job : launch.ended) {
      const auto found = std::ranges::find(now, job.id, &Job::id);
      job = found == now.end() ? job : *found;
    }
    if (!judged && !launch.ended.empty() && !launch.told) {
      tell(launch);
    }
  }
}

void EndTeller::tell(Launch& launch) {
  launch.told = true;
  std::ranges::sort(launch.ended, {}, &Job::key);
  std::string text = state_text(launch.ended);
  const Verdict verdict = verdict_of(launch.ended);
  const bool is_sweep = launch.ended.front().point.has_value();  // points of a sweep end independently
  if (const std::string rest = verdict.first && !is_sweep ? aftermath(verdict) : ""; !rest.empty()) {
    text += "; " + rest;
  }
  terminal_.notice(fmt::format("{}: {}", describe(launch.ended), text));
}

}  // namespace remote::cli
