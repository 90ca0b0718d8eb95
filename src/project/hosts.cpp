// Finds the servers of the hosts in a hostfile.

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "project/core.hpp"

namespace remote::project {

std::vector<LaunchHost> resolve_hosts(const Core& core, const std::vector<LaunchHost>& hosts) {
  std::vector<LaunchHost> found;
  bool repeated = false;
  for (const LaunchHost& host : hosts) {
    const auto& servers = core.config.servers;
    auto server = std::ranges::find(servers, host.name, &config::Server::name);
    if (server == servers.end()) {
      const auto fits = [&](const config::Server& one) {
        return one.hostname == host.name || one.internal_address == host.name;
      };
      server = std::ranges::find_if(servers, fits);
      if (server != servers.end() && std::any_of(server + 1, servers.end(), fits)) {
        throw Error::usage(host.where.empty() ? "launch" : host.where,
                           fmt::format("'{}' is the address of several servers", visible_line(host.name, 60)),
                           "name the server as configs.yaml does, such as " + server->name);
      }
    }
    if (server == servers.end()) {
      std::vector<std::string> known;
      for (const config::Server& one : servers) {
        known.push_back(one.name == one.hostname ? one.name : fmt::format("{} ({})", one.name, one.hostname));
      }
      throw Error::usage(host.where.empty() ? "launch" : host.where,
                         fmt::format("'{}' is not a server of configs.yaml", visible_line(host.name, 60)),
                         "there are " + join(known, ", "));
    }
    const auto same = std::ranges::find(found, server->name, &LaunchHost::name);
    if (same == found.end()) {
      found.push_back(host);
      found.back().name = server->name;
    } else {
      repeated = true;
      same->slots = same->slots.value_or(1) + host.slots.value_or(1);
    }
  }
  if (repeated) {  // one line per rank, as in a node file of PBS
    for (LaunchHost& host : found) {
      host.slots = host.slots.value_or(1);
    }
  }
  return found;
}

}  // namespace remote::project

namespace remote {

std::vector<LaunchHost> Project::resolve_hosts(const std::vector<LaunchHost>& hosts) const {
  return project::call(*state_, {}, [&](project::Core& core) { return project::resolve_hosts(core, hosts); });
}

}  // namespace remote
