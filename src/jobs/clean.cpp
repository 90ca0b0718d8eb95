#include "jobs/clean.hpp"

#include "base/strings.hpp"
#include "jobs/places.hpp"
#include "jobs/protocol_parts.hpp"

namespace remote::jobs {
namespace {

std::vector<CleanResult::Entry> clean_on(ssh::Connection& connection, Store& store, const JobsAt& place,
                                         const Cancel& cancel) {
  const CleanAnswer answer = servers::run_action(connection, clean_action(place.folder, place.ids()), cancel);
  std::vector<CleanResult::Entry> entries;
  std::vector<JobId> gone;
  for (const Job& job : place.jobs) {
    const CleanReply* reply = reply_about(job.id, answer.jobs);
    if (reply == nullptr) {
      entries.push_back({job, false, "the server's answer does not name it"});
      continue;
    }
    if (reply->gone()) {
      gone.push_back(job.id);
    }
    entries.push_back({job, reply->gone(), reply->reason});
  }
  store.remove(gone);
  return entries;
}

}  // namespace

servers::Action<CleanAnswer> clean_action(const RemoteFolder& folder, const std::vector<JobId>& ids,
                                          const std::vector<Backend>& known) {
  servers::Action<CleanAnswer> action;
  action.what = "removal of " + counted(ids.size(), "job");
  action.script = job_script(folder, "clean.sh", known, {"state"});
  call_each(action.script, "clean_one", ids);
  action.script.call("clean_finish");
  action.timeout = std::chrono::minutes(10);  // output of terabytes takes a disk its time
  return action;
}

void CleanAnswer::take(servers::AnswerLine& line) {
  using Outcome = CleanReply::Outcome;
  if (line.kind() != "clean") {
    line.refuse_kind();
  }
  CleanReply reply;
  reply.id = id_word(line);
  reply.outcome = line.choice<Outcome>(line.word(),
                                       {{"removed", Outcome::removed},
                                        {"none", Outcome::none},
                                        {"running", Outcome::running},
                                        {"failed", Outcome::failed}},
                                       "an unknown outcome");
  reply.reason = line.rest();
  if (reply.gone() != reply.reason.empty()) {
    line.refuse("a reason is wrong");
  }
  jobs.push_back(std::move(reply));
}

CleanResult clean(const config::Config& config, Store& store, ssh::Connector& connector,
                  const std::vector<Job>& jobs, const Cancel& cancel) {
  CleanResult result;
  result.entries = at_places(config, connector, jobs, result.errors, cancel,
                             [&](ssh::Connection& connection, const JobsAt& place) {
                               return clean_on(connection, store, place, cancel);
                             });
  return result;
}

}  // namespace remote::jobs
