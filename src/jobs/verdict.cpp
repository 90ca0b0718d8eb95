#include "jobs/verdict.hpp"

#include <algorithm>
#include <iterator>

#include "base/clock.hpp"
#include "jobs/from_wire.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/transitions.hpp"

namespace remote::jobs {
namespace {

using Kind = JobReason::Kind;

// Whether the launch stopped the job because one of the job's own ranks had failed, while the process that
// had started the ranks was still running.
bool ended_after_own_rank(const Job& job) {
  return job.state == JobState::killed && job.reason.kind == Kind::after_rank && job.rank && job.ranks &&
         job.reason.number >= *job.rank && job.reason.number < *job.rank + *job.ranks;
}

}  // namespace

std::vector<Worker> failed_workers(const AnyAgent& server, const Job& agent) {
  constexpr int sigabrt = 6;
  constexpr int sigkill = 9;
  constexpr int sigterm = 15;
  const ExactInstant asked = now_milliseconds();
  const WorkersAnswer answer = ask_workers(server, agent.remote_folder, agent.id, 10);
  const Clocks clocks = clocks_of(answer.time, asked, now_milliseconds());
  std::vector<Worker> workers;
  for (const auto& [rank, failed] : answer.workers) {
    Worker worker{agent, failed.last_lines};
    Job& job = worker.job;
    job.rank = rank;
    job.ranks = 1;
    job.reason.result.reset();
    job.reason.number = 0;
    job.reason.kind = job.reason.kind == Kind::after_rank ? Kind::none : job.reason.kind;
    const wire::JobEnd end = failed.end.value_or(wire::JobEnd{.how = wire::ProcessEnd::exited(1)});
    job.result = end.how.status();
    const int signal = job.result->signal().value_or(0);
    // A rank that loses its peer may abort, and agents stop other ranks with TERM.
    job.after_peer = failed.after_peer || (!failed.raised_at && (signal == sigabrt || signal == sigterm));
    if (job.reason.kind == Kind::server_out_of_memory && signal == sigkill) {
      job.reason.kind = Kind::out_of_memory;
    }
    if (job.reason.kind != Kind::by_scheduler && !end.node.empty()) {
      job.reason.text = end.node;
    }
    if (const auto moment = failed.raised_at ? failed.raised_at : end.at) {
      const ExactInstant at = to_instant(*moment);
      job.failed_at = clocks.ahead ? std::optional(at - *clocks.ahead) : std::nullopt;
      job.ended_at = std::chrono::floor<std::chrono::seconds>(at) + (clocks.local - clocks.server);
    } else {
      job.failed_at.reset();
    }
    workers.push_back(std::move(worker));
  }
  return workers;
}

Job with_failed_rank(const AnyAgent& server, Job job) {
  const bool is_unknown = job.state == JobState::failed && job.ranks && !job.reason.result;
  if (!is_unknown && !ended_after_own_rank(job)) {
    return job;
  }
  std::vector<Job> ranks;
  try {
    for (Worker& worker : failed_workers(server, job)) {
      ranks.push_back(std::move(worker.job));
    }
  } catch (const Error&) {
    return job;  // the verdict asks again
  }
  if (const Job* first = first_of(ranks)) {
    if (job.state == JobState::killed) {
      job.state = JobState::failed;
      job.result = first->result;
    }
    job.reason.kind = first->reason.kind == Kind::none ? Kind::after_rank : first->reason.kind;
    job.reason.number = first->rank.value_or(0);
    job.reason.text = first->reason.text;
    job.reason.result = first->result;
    job.failed_at = first->failed_at ? first->failed_at : job.failed_at;
    job.after_peer = first->after_peer;
  }
  return job;
}

std::vector<std::string> last_lines(const AnyAgent& server, const std::vector<Job>& jobs, int count,
                                    const std::vector<std::string>& files) {
  LinesQuestion question{.folder = jobs.front().remote_folder, .ids = {}, .files = files, .count = count};
  std::ranges::transform(jobs, std::back_inserter(question.ids), &Job::id);
  return ask_lines(server, question);
}

}  // namespace remote::jobs
