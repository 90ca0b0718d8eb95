#include <algorithm>
#include <iterator>
#include <tuple>

#include <remote/verdict.hpp>

#include "jobs/verdict.hpp"

namespace remote {
namespace {

using Kind = JobReason::Kind;

// How long after the cause it may be seen.
constexpr std::chrono::seconds longest_delay{5};

// The last moment at which it can have failed.
ExactInstant moment(const Job& job) {
  if (job.failed_at) {
    return *job.failed_at;
  }
  return job.ended_at ? *job.ended_at + std::chrono::milliseconds(999) : ExactInstant::max();
}

// A job whose end is not known in time comes last; of two at the same time, the one that told its own end
// comes before one that was found gone, one that a signal ended before one that exited, and the lower rank
// first.
bool is_before(const Job& one, const Job& other) {
  const auto order = [](const Job& job) {
    const bool signalled = job.result && job.result->signal();
    return std::tuple(moment(job), job.state == JobState::lost, !signalled, job.rank.value_or(0));
  };
  return order(one) < order(other);
}

}  // namespace

const Job* jobs::first_of(const std::vector<Job>& failures) {
  const Job* earliest = nullptr;
  const Job* by_itself = nullptr;
  for (const Job& job : failures) {
    if (earliest == nullptr || is_before(job, *earliest)) {
      earliest = &job;
    }
    if (!job.after_peer && (by_itself == nullptr || is_before(job, *by_itself))) {
      by_itself = &job;
    }
  }
  if (by_itself == nullptr) {
    return earliest;
  }
  const bool no_time = !by_itself->failed_at && !by_itself->ended_at;
  return no_time || moment(*by_itself) - moment(*earliest) <= longest_delay ? by_itself : earliest;
}

namespace {

// The rank that failed first below a job (see with_failed_rank()), as a job of its own; else the job.
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

// The job that somebody ended before this failure, where the failure follows from that: it says that a peer
// is gone, or it came while the job was being ended.
std::optional<Job> killed_before(const std::vector<Job>& jobs, const Job* failure) {
  const Job* killed = nullptr;
  for (const Job& job : jobs) {
    const bool by_somebody = job.state == JobState::killed && job.reason.kind == Kind::by_user;
    const auto follows = [&] {
      // Clocks of two servers are compared.
      constexpr std::chrono::milliseconds jitter{250};
      const bool of_peer = failure->after_peer && moment(job) - longest_delay <= moment(*failure);
      return of_peer || (job.failed_at && job.ended_at && *job.failed_at - jitter <= moment(*failure) &&
                         moment(*failure) <= *job.ended_at + longest_delay);
    };
    if (by_somebody && (failure == nullptr || follows()) && (killed == nullptr || is_before(job, *killed))) {
      killed = &job;
    }
  }
  return killed == nullptr ? std::nullopt : std::optional(*killed);
}

std::optional<Instant> second_of(const Job& job) {
  return job.failed_at ? std::chrono::floor<std::chrono::seconds>(*job.failed_at) : job.ended_at;
}

// How long after `first` a job ended, into the verdict.
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

// The servers that an elastic launch has gone on without, where it succeeded on enough others; else none.
std::vector<std::string> went_on_without(const std::vector<Job>& jobs) {
  std::vector<std::string> left;
  int succeeded = 0;
  for (const Job& job : jobs) {
    if (job.state == JobState::succeeded) {
      ++succeeded;
    } else if (job.needed && (has_left(job) || job.state == JobState::unknown)) {
      left.push_back(job.server);
    } else {
      return {};
    }
  }
  return jobs.empty() || succeeded < jobs.front().needed.value_or(0) ? std::vector<std::string>() : left;
}

// The server that was lost, by a job that was ended after it. A server that was cut off takes the others for
// lost; where a job of those has told its own end, it was the cut-off one that was.
std::string lost_by(const Job& ended, const std::vector<Job>& jobs) {
  const bool lives = std::ranges::any_of(jobs, [&](const Job& job) {
    const bool was_lost =
        job.state == JobState::lost || (job.reason.kind == Kind::after_loss && job.reason.text == job.server);
    return job.server == ended.reason.text && is_final(job.state) && !was_lost;
  });
  return lives ? ended.server : ended.reason.text;
}

// Counts the ranks by how they ended. `first`: the one that failed first, or nullptr.
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
    } else if (job.reason.kind == Kind::after_rank) {
      verdict.ended += ranks;
    } else if (job.reason.kind == Kind::after_loss) {
      verdict.ended += ranks;
      verdict.lost_server = verdict.lost_server.empty() ? lost_by(job, jobs) : verdict.lost_server;
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
  std::vector<Job> jobs;
  std::ranges::copy_if(all, std::back_inserter(jobs), [](const Job& job) { return !is_idle(job); });
  for (const Job& job : jobs) {
    if (job.attempts.size() > verdict.attempts.size()) {
      verdict.attempts = job.attempts;
    }
  }
  for (const Job& job : jobs) {
    verdict.total += ranks_of(job);
  }
  verdict.left = went_on_without(jobs);
  if (!verdict.left.empty()) {
    for (const Job& job : jobs) {
      verdict.succeeded += job.state == JobState::succeeded ? ranks_of(job) : 0;
    }
    return verdict;
  }
  std::vector<Job> failures = workers;
  for (const Job& job : jobs) {
    if (has_failed(job) && std::ranges::find(workers, job.id, &Job::id) == workers.end()) {
      failures.push_back(failure_of(job));
    }
  }
  const Job* first = jobs::first_of(failures);
  // Ranks of a launch that stood still may fail when the others are ended.
  const bool hung = std::ranges::any_of(jobs, [](const Job& job) {
    return job.state == JobState::killed && job.reason.kind == Kind::after_hang;
  });
  if (hung) {
    first = nullptr;
  } else if (first != nullptr || gone.empty()) {
    verdict.killed_first = killed_before(jobs, first);
  }
  const bool lost =
      !hung && !verdict.killed_first && !gone.empty() && (first == nullptr || first->after_peer);
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
  // Where all others succeeded, it may just be out of this machine's reach.
  if (lost && verdict.ended + verdict.aborted + verdict.killed > 0) {
    verdict.lost_server = gone.front();
  }
  return verdict;
}

}  // namespace remote
