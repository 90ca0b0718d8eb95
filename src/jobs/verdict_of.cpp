#include <algorithm>
#include <iterator>
#include <set>

#include <remote/verdict.hpp>

#include "jobs/verdict.hpp"
#include "rules/first_cause.hpp"

namespace remote {
namespace {

using Kind = JobReason::Kind;

// The last time at which it can have failed; nullopt: unknown.
std::optional<rules::Moment> find_moment(const Job& job) {
  if (job.failed_at) {
    return job.failed_at->time_since_epoch();
  }
  if (job.ended_at) {
    return job.ended_at->time_since_epoch() + std::chrono::milliseconds(999);
  }
  return std::nullopt;
}

rules::FailureFacts describe_failure(const Job& job) {
  return {find_moment(job), job.rank.value_or(0), job.after_peer, job.state == JobState::lost,
          job.result && job.result->signal()};
}

}  // namespace

const Job* jobs::first_of(const std::vector<Job>& failures) {
  std::vector<rules::FailureFacts> facts;
  std::ranges::transform(failures, std::back_inserter(facts), describe_failure);
  const auto first = rules::find_first_failure(facts);
  return first ? &failures[*first] : nullptr;
}

std::optional<Instant> jobs::find_last_report(const std::vector<Job>& jobs, const std::string& server) {
  std::optional<Instant> last;
  for (const Job& job : jobs) {
    if (job.server == server) {
      last = std::max(last, job.checked_at);
    }
  }
  return last;
}

namespace {

// The rank of a job that failed first (see with_failed_rank()), as a separate job; otherwise the job.
Job failure_of(const Job& job) {
  if (job.state != JobState::failed || !job.ranks || !job.reason.result) {
    return job;
  }
  Job rank = job;
  rank.rank = job.reason.number;
  rank.ranks = 1;
  rank.result = job.reason.result;
  rank.reason = {.kind = job.reason.kind == Kind::after_rank ? Kind::none : job.reason.kind,
                 .text = job.reason.text};
  return rank;
}

// The job that a user stopped before this failure, if the failure is a consequence: it blames a lost peer, or
// it happened while the job was being stopped.
std::optional<Job> killed_before(const std::vector<Job>& jobs, const Job* failure) {
  std::vector<Job> killed;
  for (const Job& job : jobs) {
    if (job.state != JobState::killed || job.reason.kind != Kind::by_user) {
      continue;
    }
    rules::StopFacts stop;
    if (job.failed_at) {
      stop.began = job.failed_at->time_since_epoch();
    }
    if (job.ended_at) {
      stop.ended = job.failed_at ? job.ended_at->time_since_epoch() : *find_moment(job);
    }
    if (failure == nullptr || rules::follows_stop(describe_failure(*failure), stop)) {
      killed.push_back(job);
      killed.back().after_peer = false;
    }
  }
  const Job* first = jobs::first_of(killed);
  return first == nullptr ? std::nullopt : std::optional(*first);
}

std::optional<Instant> second_of(const Job& job) {
  return job.failed_at ? std::chrono::floor<std::chrono::seconds>(*job.failed_at) : job.ended_at;
}

// Adds to the verdict how long after `first` a job ended.
void measure(Verdict& verdict, const Job& first, const Job& job) {
  const bool exact = first.failed_at && job.failed_at;
  std::chrono::milliseconds ahead{0};
  if (exact) {
    ahead = *job.failed_at - *first.failed_at;
  } else if (const auto begin = second_of(first), end = second_of(job); begin && end) {
    ahead = *end - *begin;
  } else {
    return;
  }
  if (ahead.count() >= 0 && (!verdict.ahead || ahead < *verdict.ahead)) {
    verdict.ahead = ahead;
    verdict.exact = exact;
  }
}

// Whether the last attempt of a launch with restarts ran without this server.
bool was_left_out(const std::string& server, const std::vector<Attempt>& attempts) {
  return std::ranges::any_of(attempts, [&](const Attempt& attempt) {
    return std::ranges::find(attempt.without, server) != attempt.without.end();
  });
}

// Whether the launch can succeed without this job of torchrun. The first agent hosts the store that all
// others need.
bool can_leave(const Job& job) {
  return job.needed && job.ranks && !job.may_restart && job.rank.value_or(0) > 0 &&
         (has_left(job) || job.state == JobState::unknown);
}

// If an elastic launch of torchrun succeeded, moves the jobs that it continued without to `left`.
void drop_left_agents(std::vector<Job>& jobs, std::vector<std::string>& left) {
  const auto succeeded = std::ranges::count(jobs, JobState::succeeded, &Job::state);
  const auto gone = std::ranges::count_if(jobs, can_leave);
  if (gone == 0 || succeeded < jobs.front().needed.value_or(0) ||
      succeeded + gone < static_cast<std::ptrdiff_t>(jobs.size())) {
    return;
  }
  for (const Job& job : jobs) {
    if (can_leave(job)) {
      left.push_back(job.server);
    }
  }
  std::erase_if(jobs, can_leave);
}

// The lost server, according to the jobs that were stopped because of the loss; "" if there is none.
std::string find_lost_server(const std::vector<Job>& jobs) {
  std::vector<rules::Accusation> accusations;
  std::set<std::string> present;
  std::set<std::string> absent;
  for (const Job& job : jobs) {
    const bool after_loss = job.reason.kind == Kind::after_loss;
    if (job.state == JobState::killed && after_loss) {
      accusations.push_back({job.server, job.reason.text});
    }
    // If all jobs of a server ended on their own or were stopped by a user, it was not lost.
    const bool was_there = is_final(job.state) && job.state != JobState::lost && !after_loss;
    (was_there ? present : absent).insert(job.server);
  }
  for (const std::string& server : absent) {
    present.erase(server);
  }
  return rules::find_lost_server(accusations, present);
}

// Counts the ranks by how they ended. `first` is the one that failed first, or nullptr.
void count(Verdict& verdict, const std::vector<Job>& jobs, const Job* first) {
  for (const Job& job : jobs) {
    const int ranks = ranks_of(job);
    if (has_failed(job)) {
      verdict.aborted += ranks;
      continue;
    }
    if (job.state == JobState::succeeded) {
      verdict.succeeded += ranks;
      continue;
    }
    if (first != nullptr) {
      measure(verdict, *first, job);
    }
    if (job.state != JobState::killed) {
      verdict.unknown += ranks;
    } else if (job.reason.kind == Kind::after_rank || job.reason.kind == Kind::after_loss) {
      verdict.ended += ranks;
    } else if (job.reason.kind == Kind::after_hang) {
      verdict.ended += ranks;
      verdict.hung = verdict.hung ? verdict.hung : job;
    } else {
      verdict.killed += ranks;
    }
  }
}

}  // namespace

Verdict verdict_of(const std::vector<Job>& all, const std::vector<Job>& workers,
                   const std::vector<std::string>& gone) {
  Verdict verdict;
  for (const Job& job : all) {
    if (job.attempts.size() > verdict.attempts.size()) {
      verdict.attempts = job.attempts;
    }
    verdict.no_restart = verdict.no_restart ? verdict.no_restart : job.no_restart;
  }
  // Keep the jobs of the last attempt. Jobs of servers that it ran without ended before it, or fail on their
  // own.
  std::vector<Job> jobs;
  std::vector<std::string> left;
  for (const Job& job : all) {
    if (is_idle(job)) {
      continue;
    }
    if (was_left_out(job.server, verdict.attempts)) {
      left.push_back(job.server);
    } else {
      jobs.push_back(job);
    }
  }
  drop_left_agents(jobs, left);
  for (const Job& job : jobs) {
    verdict.total += ranks_of(job);
  }
  if (std::ranges::all_of(jobs, [](const Job& job) { return job.state == JobState::succeeded; })) {
    verdict.succeeded = verdict.total;
    left.erase(std::unique(left.begin(), left.end()), left.end());
    verdict.left = std::move(left);
    verdict.no_restart.reset();
    return verdict;
  }
  const auto is_member = [&](const std::string& server) { return !was_left_out(server, verdict.attempts); };
  std::vector<Job> failures;
  std::ranges::copy_if(workers, std::back_inserter(failures), is_member, &Job::server);
  for (const Job& job : jobs) {
    if (has_failed(job) && std::ranges::find(workers, job.id, &Job::id) == workers.end()) {
      failures.push_back(failure_of(job));
    }
  }
  const Job* first = jobs::first_of(failures);
  // If a launch hung, its ranks may fail when the others are stopped.
  const bool hung = std::ranges::any_of(jobs, [](const Job& job) {
    return job.state == JobState::killed && job.reason.kind == Kind::after_hang;
  });
  const std::string lost_server = find_lost_server(jobs);
  const auto given_up = std::ranges::find_if(gone, is_member);
  if (hung) {
    first = nullptr;
  } else if (first != nullptr || given_up == gone.end()) {
    verdict.killed_first = killed_before(jobs, first);
  }
  const bool lost = !hung && !verdict.killed_first && (first == nullptr || first->after_peer) &&
                    (!lost_server.empty() || given_up != gone.end());
  if (lost || verdict.killed_first) {
    first = nullptr;
  }
  if (first != nullptr) {
    verdict.first = *first;
    for (const Job& job : failures) {
      if (&job != first) {
        measure(verdict, *first, job);
      }
    }
  }
  count(verdict, jobs, first);
  verdict.aborted -= first != nullptr ? ranks_of(*first) : 0;
  verdict.killed -= verdict.killed_first ? ranks_of(*verdict.killed_first) : 0;
  verdict.lost_server = lost_server;
  // If all others succeeded, this server may only be unreachable from this machine.
  if (lost && lost_server.empty() && verdict.ended + verdict.aborted + verdict.killed > 0) {
    verdict.lost_server = *given_up;
  }
  const bool is_silent = std::ranges::any_of(jobs, [&](const Job& job) {
    return job.server == verdict.lost_server && job.state == JobState::unknown;
  });
  if (is_silent) {
    verdict.reported_at = jobs::find_last_report(all, verdict.lost_server);
  }
  return verdict;
}

JobState launch_state(const std::vector<Job>& jobs, const Verdict& verdict) {
  if (jobs.empty()) {
    return JobState::starting;
  }
  if (!verdict.left.empty()) {
    return JobState::succeeded;  // servers that it lost on the way do not count
  }
  for (const JobState state : {JobState::unknown, JobState::running, JobState::starting, JobState::queued}) {
    if (std::ranges::any_of(jobs, [&](const Job& job) {
          return job.state == state && !was_left_out(job.server, verdict.attempts);
        })) {
      return state;
    }
  }
  if (verdict.succeeded == verdict.total) {
    return JobState::succeeded;
  }
  if (verdict.first) {
    return verdict.first->state == JobState::lost ? JobState::lost : JobState::failed;
  }
  const bool killed =
      verdict.lost_server.empty() && (verdict.killed_first || verdict.killed > 0 || verdict.hung);
  return killed ? JobState::killed : JobState::lost;
}

}  // namespace remote
