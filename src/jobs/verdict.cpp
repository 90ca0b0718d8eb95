#include "jobs/verdict.hpp"

#include <limits>
#include <tuple>

#include "base/shell_quote.hpp"
#include "jobs/places.hpp"
#include "servers/action.hpp"

namespace remote::jobs {
namespace {

using Kind = JobReason::Kind;

bool failed(const Job& job) {
  return job.state == JobState::failed || job.state == JobState::lost;
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
  return std::tuple(moment(job), job.state == JobState::lost, job.rank.value_or(0));
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
  verdict.total = static_cast<int>(jobs.size());
  const Job* first = nullptr;
  for (const Job& job : jobs) {
    if (failed(job) && (first == nullptr || order(job) < order(*first))) {
      first = &job;
    }
  }
  if (first != nullptr) {
    verdict.first = *first;
  }
  for (const Job& job : jobs) {
    if (&job == first) {
      continue;
    }
    if (job.state == JobState::succeeded) {
      ++verdict.succeeded;
    } else if (failed(job)) {
      ++verdict.aborted;
    } else if (job.state != JobState::killed) {
      ++verdict.unknown;
    } else if (job.reason.kind == Kind::after_rank) {
      ++verdict.ended;
    } else if (job.reason.kind == Kind::after_loss) {
      ++verdict.ended;
      verdict.lost_server = verdict.lost_server.empty() ? job.reason.text : verdict.lost_server;
    } else {
      ++verdict.killed;
    }
    if (first != nullptr && job.state != JobState::succeeded) {
      measure(verdict, *first, job);
    }
  }
  return verdict;
}

std::vector<std::string> last_stderr(ssh::Connection& connection, const Job& job, const Cancel& cancel) {
  struct Answer {
    std::vector<std::string> lines;
    void take(servers::AnswerLine& line) {
      const std::string_view text = line.rest();
      if (line.kind() != "stderr" || !text.starts_with('|')) {
        line.refuse_kind();
      }
      lines.emplace_back(text.substr(1));
    }
  };
  servers::Action<Answer> action;
  action.what = "last lines of a job";
  action.script.add("last_stderr.sh")
      .append("last_stderr " + remote_path_word(job_folder_text(job)) + " 10\n");
  action.timeout = std::chrono::seconds(5);
  return servers::run_action(connection, action, cancel).lines;
}

}  // namespace remote::jobs
