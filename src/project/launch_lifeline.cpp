// The lifeline of a launch: which servers have a supervisor for it, and whether the supervisors are
// connected.

#include <algorithm>
#include <functional>
#include <iterator>

#include "base/log.hpp"
#include "jobs/from_wire.hpp"
#include "jobs/link_tokens.hpp"
#include "jobs/refresh.hpp"
#include "project/launch_attempt.hpp"
#include "rules/python_version.hpp"
#include "servers/fanout.hpp"
#include "servers/python_env.hpp"

namespace remote::project {
namespace {

// If a launch holds leases on only some of its servers for this long, it releases them.
constexpr int lease_complete_seconds = 60;

}  // namespace

// Returns nullopt if the launch needs no supervisors or cannot have any.
std::optional<wire::LaunchSpec> LaunchAttempt::plan_lifeline(const Plan& plan) {
  const bool notifies = can_notify();
  // mpirun uses it to start processes on the other servers.
  const bool brings_orders =
      !request_.mpi_over_ssh && plan.processes.size() > 1 &&
      std::ranges::none_of(plan.processes, &std::string::empty, &PlannedProcess::mpi_host);
  // The servers take their leases in an agreed order.
  const bool queues = request_.lease.wait && servers_.size() > 1;
  const bool watched = request_.hang_after.count() > 0;
  if (!request_.end_others && !brings_orders && !queues && !notifies && !watched) {
    return std::nullopt;
  }
  wire::LaunchSpec spec;
  spec.servers = list_supervised(plan);
  if (spec.servers.empty()) {
    return std::nullopt;
  }
  if (spec.servers.size() > 1) {
    const auto& ports = answers_.front().port;
    if (!ports || !ports->second) {
      const std::string mpi = "cannot launch with mpi";
      const std::string needs_it = request_.restarts > 0 ? "cannot launch with restarts"
                                   : queues              ? "cannot wait in line"
                                   : watched             ? "cannot watch the launch for a hang"
                                   : brings_orders       ? mpi
                                                         : "";
      if (!needs_it.empty()) {
        throw Error(needs_it, "the other servers cannot reach it: no second port is free",
                    "launch without that, or free a port there")
            .mended_by(needs_it == mpi ? Remedy::use_mpi_ssh : Remedy::none)
            .on(servers_.front().name);
      }
      core_.tell(NoLifeline{{{servers_.front().name, NoLifeline::Cause::no_port, ""}}, true});
      return std::nullopt;
    }
    spec.port = *ports->second;
  }
  spec.tokens = jobs::make_link_tokens(spec.servers.size());
  spec.is_whole = spec.servers.size() == servers_.size();
  spec.notifies = notifies;
  if (notifies) {
    spec.activate = servers::activation(core_.config, servers_.front());
  }
  if (queues) {
    spec.lease_seconds = lease_complete_seconds;
  }
  describe(spec, plan);
  return spec;
}

bool LaunchAttempt::lacks_python_to_notify() const {
  return core_.config.notify && core_.config.notify->command.empty() && answers_.front().facts.python.empty();
}

// Whether the first server can send the notification. Warns if not.
bool LaunchAttempt::can_notify() {
  if (lacks_python_to_notify()) {
    core_.tell(CheckWarned{{servers_.front().name},
                           {"notify",
                            CheckStatus::warn,
                            std::string("it cannot send the notification: it has no ") + rules::usable_python,
                            {}}});
    return false;
  }
  return core_.config.notify.has_value();
}

std::vector<wire::LaunchServer> LaunchAttempt::list_supervised(const Plan& plan) const {
  const std::vector<int> ranks = by_server(plan, [](const PlannedProcess& process) { return process.ranks; });
  std::vector<wire::LaunchServer> servers;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    wire::LaunchServer server{servers_[i].name, ranks[i], ""};
    bool has_processes = false;
    for (const auto* processes : {&plan.processes, &plan.spares}) {
      const auto process = std::ranges::find(*processes, server.name, &PlannedProcess::server);
      if (process != processes->end()) {
        has_processes = true;
        server.mpi_host = process->mpi_host;  // also with ssh: the coordinator reports the end of mpirun
      }
    }
    if (has_processes) {
      servers.push_back(std::move(server));
    }
  }
  return servers;
}

void LaunchAttempt::describe(wire::LaunchSpec& spec, const Plan& plan) const {
  spec.ends_alone = !request_.end_others;
  spec.address = plan.master_addr;
  spec.grace_seconds = static_cast<int>(request_.failure_grace.count());
  spec.timeout_seconds = static_cast<int>(request_.lost_after.count());
  spec.needed = spec.ends_alone ? 0 : plan.needed.value_or(0);
  if (request_.hang_after.count() > 0) {
    spec.hang = wire::HangSpec{static_cast<int>(request_.hang_after.count()),
                               jobs::to_hang_response(request_.on_hang)};
  }
  if (request_.restarts == 0) {
    return;
  }
  wire::RestartSpec& restarts = spec.restarts.emplace();
  restarts.most = request_.restarts;
  restarts.least = request_.min_servers.value_or(static_cast<int>(servers_.size() - spares_));
  restarts.causes = jobs::to_restart_on(request_.restart_on);
  restarts.final_codes = request_.no_restart_exit;
  restarts.spares = static_cast<int>(spares_);
  restarts.numbers_own_ranks =
      plan.processes.front().is_torch_agent || !plan.processes.front().mpi_host.empty();
  if (const auto& checkpoint = core_.config.checkpoint) {
    restarts.checkpoint_files = checkpoint->files;
    restarts.checkpoint_complete = checkpoint->complete;
    restarts.checkpoint_folders.assign(core_.config.outputs.begin(), core_.config.outputs.end());
  }
}

void LaunchAttempt::await_lifelines(const wire::LaunchSpec& spec, const std::vector<Job>& ranks) {
  const auto news_of = [&](const std::vector<std::string>& names) {
    const auto outcomes = servers::fan_out(names, std::identity(), [&](const std::string& name, std::size_t) {
      std::vector<Job> there;
      std::ranges::copy_if(ranks, std::back_inserter(there),
                           [&](const Job& job) { return job.server == name; });
      return jobs::ask_with_lifeline(core_.site(), there);
    });
    std::vector<Job> news;
    for (const auto& outcome : outcomes) {
      // A server that does not answer now is noticed by the next request: its ranks have started.
      if (outcome.ok()) {
        news.insert(news.end(), outcome.value->begin(), outcome.value->end());
      }
    }
    // Saves all jobs at once, because each save locks the store and waits for the disk.
    if (const auto unsaved = jobs::save(core_.site().store, news)) {
      log_info("", "{}", unsaved->message());  // already reported by the start
    }
    return news;
  };
  // The others connect to the first server, so only they are asked.
  std::vector<std::string> others;
  std::ranges::transform(spec.servers.begin() + 1, spec.servers.end(), std::back_inserter(others),
                         &wire::LaunchServer::name);
  std::vector<Job> news = news_of(others);
  if (std::ranges::any_of(news, lacks_lifeline)) {
    // On slow storage the first lifeline may still be starting; the others will then reach it.
    const std::vector<Job> first = news_of({spec.servers.front().name});
    if (!first.empty() && std::ranges::none_of(first, lacks_lifeline)) {
      std::erase_if(news, lacks_lifeline);
    }
  }
  tell_missing_lifelines(core_, news);
}

}  // namespace remote::project
