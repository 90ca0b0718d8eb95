#include "jobs/verdict.hpp"

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/protocol.hpp"
#include "jobs/transitions.hpp"
#include "servers/action.hpp"

namespace remote::jobs {
namespace {

using Kind = JobReason::Kind;

}  // namespace

std::vector<Worker> failed_workers(ssh::Connection& connection, const Job& agent, const Cancel& cancel) {
  constexpr int sigabrt = 6;
  constexpr int sigkill = 9;
  constexpr int sigterm = 15;
  const ExactInstant asked = now_milliseconds();
  const WorkersAnswer answer =
      servers::run_action(connection, workers_action(agent.remote_folder, agent.id, 10), cancel);
  const Clocks clocks = clocks_of(answer.clock, asked, now_milliseconds());
  std::vector<Worker> workers;
  for (const auto& [rank, reply] : answer.workers) {
    Worker worker{agent, reply.last_lines};
    Job& job = worker.job;
    job.rank = rank;
    job.ranks = 1;
    job.reason.result.reset();
    job.reason.number = 0;
    job.reason.kind = job.reason.kind == Kind::after_rank ? Kind::none : job.reason.kind;
    const End end = reply.end.value_or(End{.status = ExitStatus::exited(1)});
    job.result = end.status;
    const int signal = job.result->signal().value_or(0);
    // One whose peer is gone may abort; TERM is what an agent ends the others with.
    job.after_peer = reply.after_peer || (!reply.raised_at && (signal == sigabrt || signal == sigterm));
    if (job.reason.kind == Kind::server_out_of_memory && signal == sigkill) {
      job.reason.kind = Kind::out_of_memory;
    }
    if (job.reason.kind != Kind::by_scheduler && !end.node.empty()) {
      job.reason.text = end.node;
    }
    const auto at = reply.raised_at ? reply.raised_at : end.at;
    job.failed_at = at && clocks.ahead ? std::optional(*at - *clocks.ahead) : std::nullopt;
    if (at) {
      job.ended_at = std::chrono::floor<std::chrono::seconds>(*at) + (clocks.local - clocks.server);
    }
    workers.push_back(std::move(worker));
  }
  return workers;
}

Job with_failed_rank(ssh::Connection& connection, Job job, const Cancel& cancel) {
  if (job.state != JobState::failed || !job.ranks || job.reason.result) {
    return job;
  }
  std::vector<Job> ranks;
  try {
    for (Worker& worker : failed_workers(connection, job, cancel)) {
      ranks.push_back(std::move(worker.job));
    }
  } catch (const Error&) {
    return job;  // a verdict asks again
  }
  if (const Job* first = first_of(ranks)) {
    job.reason.kind = first->reason.kind == Kind::none ? Kind::after_rank : first->reason.kind;
    job.reason.number = first->rank.value_or(0);
    job.reason.text = first->reason.text;
    job.reason.result = first->result;
    job.failed_at = first->failed_at ? first->failed_at : job.failed_at;
    job.after_peer = first->after_peer;
  }
  return job;
}

std::vector<std::string> last_lines(ssh::Connection& connection, const std::vector<Job>& jobs, int count,
                                    const std::vector<std::string>& files, const Cancel& cancel) {
  struct Answer {
    std::vector<std::string> lines;
    void take(servers::AnswerLine& line) {
      const std::string_view text = line.rest();
      if (line.kind() != "line" || !text.starts_with('|')) {
        line.refuse_kind();
      }
      lines.emplace_back(text.substr(1));
    }
  };
  servers::Action<Answer> action;
  action.what = "last lines of " + counted(jobs.size(), "job");
  std::vector<std::string> words{std::to_string(count)};
  for (const Job& job : jobs) {
    for (const std::string& file : files) {
      words.push_back(job.id.text() + "/" + file);
    }
  }
  const RemoteFolder& folder = jobs.front().remote_folder;
  action.script.set_path("folder", folder.project + "/" + folder.jobs_folder)
      .add("actions/last_lines.sh")
      .call("last_lines", words);
  action.timeout = std::chrono::seconds(5);
  return servers::run_action(connection, action, cancel).lines;
}

}  // namespace remote::jobs
