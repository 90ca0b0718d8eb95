#include "project/sweep_members.hpp"

#include <algorithm>
#include <iterator>

#include "base/clock.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/keep_program.hpp"
#include "jobs/link_tokens.hpp"
#include "jobs/refresh.hpp"
#include "project/lease.hpp"
#include "servers/facts.hpp"
#include "servers/fanout.hpp"

namespace remote::project {
namespace {

Member ready(Core& core, const config::Server& server, const std::optional<std::string>& image,
             const LeaseRequest& lease) {
  check_lease(lease, server.env, "cannot lease on " + server.name);
  const auto connection = core.connector().connect(server, core.cancel());
  Member member{server, connection->login(), connection->peer_address(), std::nullopt, std::nullopt};
  servers::FactsRequest request{.wanted = {.project = core.config.project_path_on(server)},
                                .timeout = std::chrono::seconds(30)};
  request.wanted.port = 0;
  if (lease.any()) {
    request.lease = servers::to_terms(lease, core.config, server);
    request.wanted.gpus = wire::GpuDetail::brief;
  }
  const servers::FactsAnswer answer = servers::ask_facts(*connection, request, core.cancel());
  if (lease.any()) {
    LeaseRequest ever = lease;  // a point waits for its lease
    ever.wait = true;
    judge_lease(ever, answer, server.name);
  }
  member.port = answer.port->suggested;
  if (const auto wanted = servers::container_of(server, image)) {
    member.container = servers::ready_container(*connection, core.config, server, *wanted, core.cancel());
  }
  return member;
}

// The values of the successful ones. Reports the errors of the others and adds them to `errors`.
template <typename Value>
std::vector<Value> successes(Core& core, const std::vector<servers::Outcome<Value>>& outcomes,
                             std::vector<Error>& errors) {
  std::vector<Value> values;
  for (const servers::Outcome<Value>& outcome : outcomes) {
    if (outcome.ok()) {
      values.push_back(*outcome.value);
    }
  }
  if (const std::vector<Error> failed = servers::errors_of(outcomes); !failed.empty()) {
    errors.insert(errors.end(), failed.begin(), failed.end());
    core.tell(PartsFailed{failed});
  }
  return values;
}

}  // namespace

std::vector<Member> ready_all(Core& core, const std::vector<config::Server>& servers,
                              const std::optional<std::string>& image, const LeaseRequest& lease,
                              std::vector<Error>& errors) {
  const auto outcomes = servers::fan_out(
      servers, &config::Server::name,
      [&](const config::Server& server, std::size_t) { return ready(core, server, image, lease); });
  std::vector<Member> members = successes(core, outcomes, errors);
  if (members.empty()) {
    throw Error("nothing was started", "no server can run points of a sweep").mended_by(Remedy::check_server);
  }
  if (members.size() > 1 && !members.front().port) {
    throw Error("nothing was started", "no free port that the other servers could reach")
        .mended_by(Remedy::check_server)
        .on(members.front().server.name);
  }
  return members;
}

jobs::SweepRun run_of(const std::vector<Member>& members, const JobId& launch) {
  const Member& first = members.front();
  jobs::SweepRun run{.launch = launch,
                     .tokens = jobs::make_link_tokens(members.size()),
                     .servers = {},
                     .address = first.server.internal_address.value_or(first.address),
                     .port = first.port.value_or(0),
                     .ids = {}};
  for (const Member& member : members) {
    run.servers.push_back(member.server.name);
  }
  return run;
}

Job waiting_job(const Core& core, const Member& first, const JobId& launch) {
  Job job;
  job.id = JobId::random();
  job.server = first.server.name;
  job.remote_folder = jobs::remote_folder_for(core.config, first.server);
  job.state = JobState::queued;
  job.reason = {.kind = JobReason::Kind::waiting, .text = "its turn"};
  job.launch = launch;
  job.backend = std::string(jobs::local_backend);
  job.created_at = now_seconds();
  return job;
}

std::vector<std::string> begin_run(Core& core, const std::vector<Member>& members, const jobs::SweepRun& run,
                                   const std::vector<jobs::SweepPoints>* points,
                                   const std::vector<Job>& running, std::vector<Error>& errors) {
  const auto begin_on = [&](const Member& member, std::size_t index) {
    std::vector<JobId> busy;
    for (const Job& job : running) {
      if (job.server == member.server.name) {
        busy.push_back(job.id);
      }
    }
    const RemoteFolder folder = jobs::remote_folder_for(core.config, member.server);
    const auto connection = core.connector().connect(member.server, core.cancel());
    const jobs::AnyAgent agent{*connection, core.cancel()};
    jobs::keep_program(agent, folder);
    jobs::begin_sweep(agent, folder, member.server.name, run, points == nullptr ? nullptr : &(*points)[index],
                      busy);
    return member.server.name;
  };
  std::vector<std::string> there{begin_on(members.front(), 0)};
  const std::vector<Member> others(members.begin() + 1, members.end());
  const auto name = [](const Member& member) { return member.server.name; };
  const auto outcomes = servers::fan_out(
      others, name, [&](const Member& member, std::size_t index) { return begin_on(member, index + 1); });
  std::ranges::move(successes(core, outcomes, errors), std::back_inserter(there));
  return there;
}

void give_up(Core& core, std::vector<Job>& jobs, const Error& error) {
  for (Job& job : jobs) {
    job.point->waiting = false;
    job.state = JobState::lost;
    job.reason = {.kind = JobReason::Kind::not_started, .text = error.reason()};
    job.checked_at = now_seconds();
  }
  static_cast<void>(jobs::save(core.store, jobs));
}

}  // namespace remote::project
