// SkyPilot's SSH node pools (~/.sky/ssh_node_pools.yaml): a map of pools, each with `hosts`, which are names
// or maps with `ip`; user, identity_file and password may be set for a pool or a host.

#include "project/import/parts.hpp"

namespace remote::project {

void read_skypilot(const config::YamlNode& root, ServerListBuilder& list) {
  using Kind = config::YamlNode::Kind;
  for (const auto& pool : root.entries) {
    const auto* hosts = pool.value->find("hosts");
    if (pool.value->kind != Kind::map || hosts == nullptr || hosts->value->kind != Kind::list) {
      throw config::config_error(list.file(), pool.mark, "a pool must have a list `hosts`");
    }
    for (const config::NodePtr& host : hosts->value->items) {
      const bool detailed = host->kind == Kind::map;
      const auto setting = [&](const std::string& key) {
        const std::string own = detailed ? value_of(*host, key, list.file()) : "";
        return own.empty() ? value_of(*pool.value, key, list.file()) : own;
      };
      FoundServer found;
      found.where = list.where(host->mark.line);
      found.name = detailed ? value_of(*host, "ip", list.file()) : scalar_text(*host, list.file());
      if (found.name.empty()) {
        throw config::config_error(list.file(), host->mark, "a host must be a name or have an `ip`");
      }
      found.user = setting("user");
      found.key = setting("identity_file");
      list.add(found);
      if (!setting("password").empty()) {
        list.leave_out(found.name, "password");
      }
    }
  }
}

}  // namespace remote::project
