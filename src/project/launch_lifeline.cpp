// The lifeline of a launch: which servers have one, and whether they have met.

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/hashing.hpp"
#include "base/strings.hpp"
#include "jobs/refresh.hpp"
#include "project/launch_attempt.hpp"
#include "servers/fanout.hpp"
#include "servers/python_env.hpp"

namespace remote::project {
// nullopt where there can be none. Tells which servers are without one.
std::optional<jobs::Lifeline> LaunchAttempt::plan_lifeline(const Plan& plan) {
  // mpirun reaches the other servers by it, whatever is to happen after a failure.
  const bool brings_orders =
      !request_.mpi_over_ssh && plan.processes.size() > 1 &&
      std::ranges::none_of(plan.processes, &std::string::empty, &PlannedProcess::mpi_host);
  // The servers agree by it when their turn has come.
  const bool queues = request_.lease.wait && servers_.size() > 1;
  const bool watched = request_.hang_after.count() > 0;
  if (!request_.end_others && !brings_orders && !queues && !core_.config.notify && !watched) {
    return std::nullopt;
  }
  jobs::Lifeline lifeline;
  lifeline.queue = queues;
  lifeline.leave = !request_.end_others;
  lifeline.news = news_text(plan);
  lifeline.token = random_hex(32) + random_hex(32);
  lifeline.address = plan.master_addr;
  lifeline.grace_s = static_cast<int>(request_.failure_grace.count());
  lifeline.timeout_s = static_cast<int>(request_.lost_after.count());
  plan_restarts(lifeline, plan);
  const std::string needs = request_.restarts > 0 ? "cannot launch with restarts"
                            : queues              ? "cannot wait in line"
                                                  : "cannot watch whether the launch stands still";
  lifeline.hang_s = request_.hang_after.count();
  lifeline.on_hang = to_string(request_.on_hang);
  lifeline.needed = lifeline.leave ? 0 : plan.needed.value_or(0);
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (std::ranges::find(plan.processes, servers_[i].name, &PlannedProcess::server) ==
            plan.processes.end() &&
        i < servers_.size() - spares_) {
      continue;  // nothing runs there that would have to be ended
    }
    if (!answers_[i].facts.python.empty()) {
      lifeline.servers.push_back(servers_[i].name);
      lifeline.activate.emplace(servers_[i].name, servers::activation(core_.config, servers_[i]));
      continue;
    }
    const bool for_all = i == 0 && servers_.size() > 1;
    if (request_.restarts > 0 || watched || queues) {
      throw Error(needs, "there is no Python of 3.6 or later for the launch's lifeline",
                  "install python3 there, or launch without that")
          .on(servers_[i].name);
    }
    if (brings_orders) {
      throw Error("cannot launch with mpi",
                  "there is no Python of 3.6 or later, which brings mpirun's orders to the other servers",
                  "install python3 there")
          .on(servers_[i].name)
          .mended_by(Remedy::use_mpi_ssh);
    }
    core_.tell(NoLifeline{{{servers_[i].name, NoLifeline::Cause::no_python, ""}}, for_all});
    if (for_all) {
      return std::nullopt;
    }
  }
  if (lifeline.servers.size() > 1) {
    if (!answers_.front().second_port && brings_orders) {
      throw Error("cannot launch with mpi", "no port is free by which the other servers could reach it")
          .mended_by(Remedy::use_mpi_ssh)
          .on(servers_.front().name);
    }
    if (!answers_.front().second_port && (request_.restarts > 0 || watched || queues)) {
      throw Error(needs, "no port is free by which the other servers could reach it",
                  "launch without that, or free a port there")
          .on(servers_.front().name);
    }
    if (!answers_.front().second_port) {
      core_.tell(NoLifeline{{{servers_.front().name, NoLifeline::Cause::no_port, ""}}, true});
      return std::nullopt;
    }
    lifeline.port = *answers_.front().second_port;
  }
  for (const auto* processes : {&plan.processes, &plan.spares}) {
    for (const PlannedProcess& process : *processes) {
      if (!process.mpi_host.empty()) {  // by ssh too: it tells the others when nothing more comes
        lifeline.mpi_hosts.emplace(process.mpi_host, process.server);
      }
    }
  }
  lifeline.whole = lifeline.servers.size() == servers_.size();
  return lifeline.servers.empty() ? std::nullopt : std::optional(lifeline);
}

void LaunchAttempt::plan_restarts(jobs::Lifeline& lifeline, const Plan& plan) {
  if (request_.restarts == 0) {
    return;
  }
  lifeline.restarts = request_.restarts;
  lifeline.least = request_.min_servers.value_or(static_cast<int>(servers_.size() - spares_));
  lifeline.spares = static_cast<int>(spares_);
  lifeline.no_restart_exit = request_.no_restart_exit;
  lifeline.agents = plan.processes.front().is_torch_agent || !plan.processes.front().mpi_host.empty();
  std::vector<std::string> causes;
  std::ranges::transform(request_.restart_on, std::back_inserter(causes),
                         [](RestartCause cause) { return std::string(to_string(cause)); });
  lifeline.restart_on = causes.empty() ? "any" : join(causes, ",");
  for (const config::Server& server : servers_) {
    int ranks = 0;
    for (const auto* processes : {&plan.processes, &plan.spares}) {
      for (const PlannedProcess& process : *processes) {
        ranks += process.server == server.name ? process.ranks : 0;
      }
    }
    lifeline.ranks.push_back(ranks);
  }
  if (const auto& checkpoint = core_.config.checkpoint) {
    lifeline.checkpoint = {checkpoint->files, checkpoint->complete};
    lifeline.checkpoint.insert(lifeline.checkpoint.end(), core_.config.outputs.begin(),
                               core_.config.outputs.end());
  }
}

void LaunchAttempt::await_lifelines(const jobs::Lifeline& lifeline, const std::vector<Job>& ranks) {
  // The first server is the one that the others are to reach.
  const std::vector<std::string> members(lifeline.servers.begin() + 1, lifeline.servers.end());
  const auto outcomes = servers::fan_out(members, std::identity(), [&](const std::string& name, std::size_t) {
    std::vector<Job> there;
    std::ranges::copy_if(ranks, std::back_inserter(there),
                         [&](const Job& job) { return job.server == name; });
    return jobs::refresh_for_lifeline(core_.site(), there);
  });
  std::vector<Job> news;
  for (const auto& outcome : outcomes) {
    // A server that is silent now is found out by the next question: its ranks have started.
    if (outcome.ok()) {
      news.insert(news.end(), outcome.value->begin(), outcome.value->end());
    }
  }
  tell_missing_lifelines(core_, news);
}

}  // namespace remote::project
