#include <algorithm>

#include <remote/error.hpp>

#include "base/strings.hpp"
#include "config/config.hpp"
#include "config/report.hpp"

namespace remote::config {

std::vector<Server> select_servers(const Config& config, const std::vector<std::string>& globs) {
  if (config.servers.empty()) {
    throw Error::usage("no servers", config.file.string() + " has none", "add one under 'servers:'")
        .mended_by(Remedy::add_server);
  }
  if (globs.empty()) {
    return config.servers;
  }
  std::vector<bool> chosen(config.servers.size(), false);
  for (const std::string& glob : globs) {
    bool matched = false;
    for (std::size_t i = 0; i < config.servers.size(); ++i) {
      if (glob_match(glob, config.servers[i].name)) {
        chosen[i] = true;
        matched = true;
      }
    }
    if (!matched) {
      std::vector<std::string> names;
      for (const Server& server : config.servers) {
        names.push_back(server.name);
      }
      const std::string near = did_you_mean(glob, names);
      constexpr std::size_t shown = 20;
      const std::size_t more = names.size() > shown ? names.size() - shown : 0;
      names.resize(std::min(names.size(), shown));
      throw Error::usage(
          "no server " + printable(glob),
          "there are: " + join(names, ", ") + (more > 0 ? " and " + std::to_string(more) + " more" : ""),
          near);
    }
  }
  std::vector<Server> servers;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i]) {
      servers.push_back(config.servers[i]);
    }
  }
  return servers;
}

}  // namespace remote::config
