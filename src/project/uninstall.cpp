// Removes everything that remote has installed on the servers.

#include "jobs/uninstall.hpp"

#include <algorithm>

#include "jobs/job_servers.hpp"
#include "project/core.hpp"
#include "servers/fanout.hpp"

namespace remote::project {
namespace {

UninstallResult uninstall_from(Core& core, const config::Server& server, bool dry_run) {
  const auto connection = core.connector().connect(server, core.cancel());
  jobs::UninstallAnswer answer =
      jobs::uninstall(*connection,
                      {.folder = jobs::remote_folder_for(core.config, server),
                       .agent_folder = server.agent_folder.value_or(core.config.agent_folder.value_or("")),
                       .dry_run = dry_run},
                      core.cancel());
  return {server.name, std::move(answer.running), std::move(answer.removed), std::move(answer.left)};
}

// Whether to retry: servers with the same home directory remove and install the same program at the same
// time.
bool is_disturbed(const servers::Outcome<UninstallResult>& outcome) {
  return outcome.ok()
             ? std::ranges::any_of(outcome.value->left,
                                   [](const UninstallResult::Leftover& leftover) {
                                     return leftover.reason == UninstallResult::Leftover::Reason::failed;
                                   })
             : outcome.error->cause() == Cause::other;
}

std::vector<UninstallResult> uninstall(Core& core, const UninstallRequest& request) {
  const std::vector<config::Server> servers = core.servers(request.servers);
  const auto work = [&](const config::Server& server, std::size_t) {
    return uninstall_from(core, server, request.dry_run);
  };
  auto outcomes = servers::fan_out(servers, &config::Server::name, work);
  std::vector<UninstallResult> results;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    std::vector<std::string> removed;
    if (servers.size() > 1 && !request.dry_run && is_disturbed(outcomes[i])) {
      removed = outcomes[i].ok() ? std::move(outcomes[i].value->removed) : removed;
      outcomes[i] = servers::fan_out(std::vector{servers[i]}, &config::Server::name, work).front();
    }
    UninstallResult& result = results.emplace_back();
    if (outcomes[i].ok()) {
      result = std::move(*outcomes[i].value);
      result.removed.insert(result.removed.begin(), removed.begin(), removed.end());
    }
    result.server = servers[i].name;
    result.error = outcomes[i].error;
  }
  return results;
}

}  // namespace

}  // namespace remote::project

namespace remote {

std::vector<UninstallResult> Project::uninstall(const UninstallRequest& request,
                                                const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::uninstall(core, request); });
}

}  // namespace remote
