// Ansible's YAML inventory: groups, each with `hosts`, `vars` and `children`.

#include "project/import/parts.hpp"

namespace remote::project {
namespace {

using Kind = config::YamlNode::Kind;

void take_vars(const config::YamlNode& map, AnsibleVars& vars) {
  for (const auto& entry : map.entries) {
    if (entry.value->kind == Kind::scalar) {
      set_ansible_var(entry.key, entry.value->text, vars);
    }
  }
}

// `vars`: inherited from the parent groups. `count`: the number of groups read; YAML aliases can make a short
// file expand to very many.
void read_group(const config::YamlNode& group, AnsibleVars vars, int& count, ServerListBuilder& list) {
  if (++count > 2000) {
    throw config::config_error(list.file(), group.mark, "it has too many groups");
  }
  if (group.kind != Kind::map) {
    return;
  }
  const auto part = [&](const char* key) {
    const auto* entry = group.find(key);
    return entry != nullptr && entry->value->kind == Kind::map ? entry->value : nullptr;
  };
  if (const config::NodePtr own = part("vars")) {
    take_vars(*own, vars);
  }
  // If a host is also in a subgroup, the variables of that group apply.
  if (const config::NodePtr children = part("children")) {
    for (const auto& child : children->entries) {
      read_group(*child.value, vars, count, list);
    }
  }
  if (const config::NodePtr hosts = part("hosts")) {
    for (const auto& host : hosts->entries) {
      AnsibleVars of_host = vars;
      if (host.value->kind == Kind::map) {
        take_vars(*host.value, of_host);
      }
      add_ansible_hosts(host.key, of_host, list.where(host.mark.line), list);
    }
  }
}

}  // namespace

void read_ansible_yaml(const config::YamlNode& root, ServerListBuilder& list) {
  AnsibleVars everywhere;
  if (const auto* all = root.find("all"); all != nullptr && all->value->kind == Kind::map) {
    if (const auto* vars = all->value->find("vars"); vars != nullptr && vars->value->kind == Kind::map) {
      take_vars(*vars->value, everywhere);
    }
  }
  int count = 0;
  for (const auto& group : root.entries) {
    read_group(*group.value, everywhere, count, list);
  }
}

}  // namespace remote::project
