#include "jobs/verdict.hpp"

#include <limits>
#include <optional>
#include <string_view>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace remote::jobs {
namespace {

constexpr std::string_view after_loss = "ended after the loss of ";

bool failed(const Job& job) {
  return job.state == State::failed || job.state == State::lost;
}

// The last moment at which it can have failed.
std::int64_t moment(const Job& job) {
  if (job.failed_ms) {
    return *job.failed_ms;
  }
  return job.ended_at ? *job.ended_at * 1000 + 999 : std::numeric_limits<std::int64_t>::max();
}

// A job whose end is not known in time comes last; of two at the same time, the one that told its own end
// comes before one that was found gone, and the lower rank first.
auto order(const Job& job) {
  return std::tuple(moment(job), job.state == State::lost, job.rank.value_or(0));
}

std::optional<std::int64_t> second_of(const Job& job) {
  return job.failed_ms ? *job.failed_ms / 1000 : job.ended_at;
}

// How long after `first` a job ended, into the verdict.
void measure(Verdict& verdict, const Job& first, const Job& job) {
  const bool exact = first.failed_ms && job.failed_ms;
  std::int64_t ahead = 0;
  if (exact) {
    ahead = *job.failed_ms - *first.failed_ms;
  } else if (const auto begin = second_of(first), end = second_of(job); begin && end) {
    ahead = (*end - *begin) * 1000;
  } else {
    return;
  }
  if (ahead >= 0 && (!verdict.ahead_ms || ahead < *verdict.ahead_ms)) {
    verdict.ahead_ms = ahead;
    verdict.exact = exact;
  }
}

}  // namespace

Verdict verdict_of(const std::vector<Job>& jobs) {
  Verdict verdict;
  for (const Job& job : jobs) {
    if (failed(job) && (verdict.first == nullptr || order(job) < order(*verdict.first))) {
      verdict.first = &job;
    }
  }
  for (const Job& job : jobs) {
    if (&job == verdict.first) {
      continue;
    }
    if (job.state == State::succeeded) {
      ++verdict.succeeded;
    } else if (failed(job)) {
      ++verdict.aborted;
    } else if (job.state != State::killed) {
      ++verdict.unknown;
    } else if (job.reason.starts_with("ended after ")) {
      ++verdict.ended;
      if (job.reason.starts_with(after_loss) && verdict.lost_server.empty()) {
        verdict.lost_server = job.reason.substr(after_loss.size());
      }
    } else {
      ++verdict.killed;
    }
    if (verdict.first != nullptr && job.state != State::succeeded) {
      measure(verdict, *verdict.first, job);
    }
  }
  return verdict;
}

std::string aftermath(const Verdict& verdict) {
  std::vector<std::string> parts;
  const auto add = [&](int count, const char* one, const char* several) {
    if (count > 0) {
      // only the first part says of whom it speaks
      const std::string who =
          parts.empty() ? (count == 1 ? "1 other" : fmt::format("{} others", count)) : std::to_string(count);
      parts.push_back(fmt::format("{} {}", who, count == 1 ? one : several));
    }
  };
  const bool after = verdict.first != nullptr || !verdict.lost_server.empty();
  add(verdict.ended, after ? "was ended after it" : "was ended",
      after ? "were ended after it" : "were ended");
  add(verdict.aborted, "aborted after it", "aborted after it");
  add(verdict.killed, "was killed", "were killed");
  add(verdict.succeeded, "succeeded", "succeeded");
  add(verdict.unknown, "is unknown", "are unknown");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace remote::jobs
