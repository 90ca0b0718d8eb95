// dstack's SSH fleet (type: fleet): `ssh_config` has user, port, identity_file, proxy_jump and `hosts`, which
// are names, or maps with `hostname` and their own settings.

#include <fmt/format.h>

#include "project/import/parts.hpp"

namespace remote::project {
namespace {

// "user@host:port" from a map, or the text of a scalar.
std::string jump_of(const config::YamlNode& node, const std::string& file) {
  if (node.kind != config::YamlNode::Kind::map) {
    return scalar_text(node, file);
  }
  const std::string user = value_of(node, "user", file);
  const std::string port = value_of(node, "port", file);
  return fmt::format("{}{}{}{}{}", user, user.empty() ? "" : "@", value_of(node, "hostname", file),
                     port.empty() ? "" : ":", port);
}

}  // namespace

void read_dstack(const config::YamlNode& root, ServerListBuilder& list) {
  using Kind = config::YamlNode::Kind;
  const config::YamlNode& fleet = *root.find("ssh_config")->value;
  const auto* hosts = fleet.find("hosts");
  if (hosts == nullptr || hosts->value->kind != Kind::list) {
    throw config::config_error(list.file(), fleet.mark, "`ssh_config` must have a list `hosts`");
  }
  for (const config::NodePtr& host : hosts->value->items) {
    const bool detailed = host->kind == Kind::map;
    const auto entry_of = [&](const std::string& key) {
      const auto* own = detailed ? host->find(key) : nullptr;
      return own == nullptr ? fleet.find(key) : own;
    };
    const auto setting = [&](const std::string& key) {
      const auto* entry = entry_of(key);
      return entry == nullptr ? "" : scalar_text(*entry->value, list.file());
    };
    FoundServer found;
    found.where = list.where(host->mark.line);
    found.name = detailed ? value_of(*host, "hostname", list.file()) : scalar_text(*host, list.file());
    if (found.name.empty()) {
      throw config::config_error(list.file(), host->mark, "a host must be a name or have a `hostname`");
    }
    found.user = setting("user");
    found.port = setting("port");
    found.key = setting("identity_file");
    found.internal_address = detailed ? value_of(*host, "internal_ip", list.file()) : "";
    if (const auto* jump = entry_of("proxy_jump")) {
      found.proxy_jump = jump_of(*jump->value, list.file());
      if (jump->value->find("identity_file") != nullptr) {
        list.leave_out(found.name, "identity_file of proxy_jump");
      }
    }
    list.add(found);
    for (const char* key : {"ssh_key", "blocks"}) {
      if (entry_of(key) != nullptr) {
        list.leave_out(found.name, key);
      }
    }
  }
}

}  // namespace remote::project
