#include "jobs/kill.hpp"

#include <algorithm>

#include "base/strings.hpp"
#include "jobs/ask.hpp"
#include "jobs/remote_folder.hpp"
#include "servers/fanout.hpp"

namespace remote::jobs {
namespace {

std::vector<KillResult::Entry> kill_on(ssh::Connection& connection, Store& store, const JobsAt& group,
                                       const KillRequest& order, const Cancel& cancel) {
  ssh::ExecRequest request;
  request.what = "end of " + counted(group.jobs.size(), "job");
  request.input =
      kill_script(group.folder, group.ids(), order.signal, static_cast<int>(order.grace.count()), order.by);
  request.timeout = order.grace + std::chrono::seconds(30);
  connection.expect();
  const std::vector<KillReply> replies = parse_kill(connection.exec(request, cancel).out);
  const std::vector<Job> now = ask_over(connection, store, group.jobs, std::chrono::seconds(10), cancel);
  std::vector<KillResult::Entry> entries;
  for (const Job& job : now) {
    const auto reply =
        std::find_if(replies.begin(), replies.end(), [&](const KillReply& one) { return one.id == job.id; });
    if (reply == replies.end()) {
      throw Error("cannot tell whether the job ended", "the server's answer does not name it",
                  "run `remote job-list`");
    }
    entries.push_back({job, reply->outcome, reply->signalled, reply->survivors, reply->reason});
  }
  return entries;
}

}  // namespace

KillResult kill(const config::Config& config, Store& store, ssh::Connector& connector,
                const std::vector<Job>& jobs, const KillRequest& order, const Cancel& cancel) {
  KillResult result;
  const std::vector<JobsAt> groups = by_place(jobs);
  const auto outcomes = servers::fan_out(
      groups, [](const JobsAt& group) { return group.server; },
      [&](const JobsAt& group, std::size_t) {
        const auto connection = connector.connect(server_of(config, group.jobs.front()), cancel);
        return kill_on(*connection, store, group, order, cancel);
      });
  for (const auto& outcome : outcomes) {
    if (outcome.ok()) {
      result.entries.insert(result.entries.end(), outcome.value->begin(), outcome.value->end());
    } else {
      result.errors.push_back(*outcome.error);
    }
  }
  std::sort(result.entries.begin(), result.entries.end(),
            [](const KillResult::Entry& a, const KillResult::Entry& b) { return a.job.key < b.job.key; });
  return result;
}

}  // namespace remote::jobs
