#include "jobs/kill.hpp"

#include "jobs/ask.hpp"
#include "jobs/places.hpp"
#include "jobs/protocol_parts.hpp"

namespace remote::jobs {
namespace {

std::vector<KillResult::Entry> kill_on(ssh::Connection& connection, Store& store, const JobsAt& place,
                                       const KillRequest& order, const Cancel& cancel) {
  connection.expect();  // the question how the jobs are then
  const KillAnswer answer = servers::run_action(
      connection,
      kill_action(place.folder, place.ids(), order.signal, static_cast<int>(order.grace.count()), order.by),
      cancel);
  std::vector<KillResult::Entry> entries;
  for (const Job& job : ask_over(connection, store, place.jobs, std::chrono::seconds(10), cancel)) {
    const KillReply* reply = reply_about(job.id, answer.jobs);
    if (reply == nullptr) {
      throw Error("cannot tell whether the job ended", "the server's answer does not name it")
          .mended_by(Remedy::list_jobs);
    }
    entries.push_back({job, reply->outcome, reply->signalled, reply->survivors, reply->reason});
  }
  return entries;
}

}  // namespace

KillResult kill(const config::Config& config, Store& store, ssh::Connector& connector,
                const std::vector<Job>& jobs, const KillRequest& order, const Cancel& cancel) {
  KillResult result;
  result.entries = at_places(config, connector, jobs, result.errors, cancel,
                             [&](ssh::Connection& connection, const JobsAt& place) {
                               return kill_on(connection, store, place, order, cancel);
                             });
  return result;
}

}  // namespace remote::jobs
