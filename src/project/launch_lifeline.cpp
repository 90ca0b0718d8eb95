// The lifeline of a launch: which servers have one, and whether they have met.

#include <algorithm>
#include <functional>

#include "base/hashing.hpp"
#include "jobs/refresh.hpp"
#include "project/launch_attempt.hpp"
#include "servers/fanout.hpp"
#include "servers/python_env.hpp"

namespace remote::project {
namespace {

Error no_lifeline(const std::string& needs_it, NoLifeline::Cause cause) {
  return cause == NoLifeline::Cause::no_port
             ? Error(needs_it, "no port is free by which the other servers could reach it",
                     "launch without that, or free a port there")
             : Error(needs_it, "there is no Python of 3.6 or later for the launch's lifeline",
                     "install python3 there, or launch without that");
}

}  // namespace

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
  lifeline.token = random_hex(32) + random_hex(32);
  describe(lifeline, plan);
  const std::string mpi = "cannot launch with mpi";
  const std::string needs_it = request_.restarts > 0 ? "cannot launch with restarts"
                               : queues              ? "cannot wait in line"
                               : watched             ? "cannot watch whether the launch stands still"
                               : brings_orders       ? mpi
                                                     : "";
  const auto go_without = [&](const config::Server& server, NoLifeline::Cause cause, bool for_all) {
    if (!needs_it.empty()) {
      throw no_lifeline(needs_it, cause)
          .mended_by(needs_it == mpi ? Remedy::use_mpi_ssh : Remedy::none)
          .on(server.name);
    }
    core_.tell(NoLifeline{{{server.name, cause, ""}}, for_all});
  };
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
    go_without(servers_[i], NoLifeline::Cause::no_python, for_all);
    if (for_all) {
      return std::nullopt;
    }
  }
  if (lifeline.servers.size() > 1) {
    if (!answers_.front().second_port) {
      go_without(servers_.front(), NoLifeline::Cause::no_port, true);
      return std::nullopt;
    }
    lifeline.port = *answers_.front().second_port;
  }
  lifeline.whole = lifeline.servers.size() == servers_.size();
  return lifeline.servers.empty() ? std::nullopt : std::optional(lifeline);
}

void LaunchAttempt::describe(jobs::Lifeline& lifeline, const Plan& plan) const {
  lifeline.leave = !request_.end_others;
  lifeline.news = news_text(plan);
  lifeline.address = plan.master_addr;
  lifeline.grace_s = static_cast<int>(request_.failure_grace.count());
  lifeline.timeout_s = static_cast<int>(request_.lost_after.count());
  lifeline.hang_s = request_.hang_after.count();
  lifeline.on_hang = request_.on_hang;
  lifeline.needed = lifeline.leave ? 0 : plan.needed.value_or(0);
  for (const auto* processes : {&plan.processes, &plan.spares}) {
    for (const PlannedProcess& process : *processes) {
      if (!process.mpi_host.empty()) {  // by ssh too: it tells the others when nothing more comes
        lifeline.mpi_hosts.emplace(process.mpi_host, process.server);
      }
    }
  }
  if (request_.restarts == 0) {
    return;
  }
  lifeline.restarts = request_.restarts;
  lifeline.least = request_.min_servers.value_or(static_cast<int>(servers_.size() - spares_));
  lifeline.spares = static_cast<int>(spares_);
  lifeline.no_restart_exit = request_.no_restart_exit;
  lifeline.agents = plan.processes.front().is_torch_agent || !plan.processes.front().mpi_host.empty();
  lifeline.restart_on = request_.restart_on;
  lifeline.ranks = by_server(plan, [](const PlannedProcess& process) { return process.ranks; });
  if (const auto& checkpoint = core_.config.checkpoint) {
    lifeline.checkpoint = {checkpoint->files, checkpoint->complete};
    lifeline.checkpoint.insert(lifeline.checkpoint.end(), core_.config.outputs.begin(),
                               core_.config.outputs.end());
  }
}

void LaunchAttempt::await_lifelines(const jobs::Lifeline& lifeline, const std::vector<Job>& ranks) {
  const auto news_of = [&](const std::vector<std::string>& names) {
    const auto outcomes = servers::fan_out(names, std::identity(), [&](const std::string& name, std::size_t) {
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
    return news;
  };
  // The first server is the one that the others are to reach.
  std::vector<Job> news = news_of({lifeline.servers.begin() + 1, lifeline.servers.end()});
  if (std::ranges::any_of(news, lacks_lifeline)) {
    // With slow storage it may still begin, and then the others will reach it.
    const std::vector<Job> first = news_of({lifeline.servers.front()});
    if (!first.empty() && std::ranges::none_of(first, lacks_lifeline)) {
      std::erase_if(news, lacks_lifeline);
    }
  }
  tell_missing_lifelines(core_, news);
}

}  // namespace remote::project
