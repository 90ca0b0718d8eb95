#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/yaml_reader.hpp"
#include "project/import/import.hpp"

// Used by the readers of all forms. Only included in src/project/import.

namespace remote::project {

// A server as written in a file, not validated. "": not set.
struct FoundServer {
  std::string name;      // the name in the file; also its address if there is no other
  std::string hostname;  // default: the name
  std::string user;
  std::string port;
  std::string key;  // path of a private key
  std::string internal_address;
  std::string proxy_jump;
  std::string where;  // "inventory:3"
};

// Collects and validates servers.
class ServerListBuilder {
 public:
  ServerListBuilder(ServerListForm form, std::string file, std::filesystem::path folder,
                    std::filesystem::path project);

  const std::string& file() const { return file_; }
  // "hosts:3"
  std::string where(int line) const { return file_ + ":" + std::to_string(line); }
  // Adds a server, unless one with this name exists. A name that is not allowed in configs.yaml is replaced
  // by server-1, server-2, …. Throws Error (usage).
  void add(const FoundServer& found);
  void leave_out(const std::string& server, const std::string& what);
  // Throws Error (usage) if there are no servers.
  ServerList take();

 private:
  std::string file_;
  std::filesystem::path folder_;
  std::filesystem::path project_;
  ServerList list_;
  std::set<std::string> names_;  // as in the file
  std::size_t count_ = 0;        // number of calls
};

// The text of a scalar; "" for null. Throws Error (usage) for a list or a map.
std::string scalar_text(const config::YamlNode& node, const std::string& file);
// The text of a map's value, as scalar_text(); "" if the key does not exist.
std::string value_of(const config::YamlNode& map, const std::string& key, const std::string& file);

void read_hostfile(std::string_view text, ServerListBuilder& list);
void read_ssh_hosts(std::string_view text, ServerListBuilder& list);
void read_skypilot(const config::YamlNode& root, ServerListBuilder& list);
void read_dstack(const config::YamlNode& root, ServerListBuilder& list);
void read_ansible_ini(std::string_view text, ServerListBuilder& list);
void read_ansible_yaml(const config::YamlNode& root, ServerListBuilder& list);

// Ansible variables by name; those of a host include those of its groups.
using AnsibleVars = std::map<std::string, std::string, std::less<>>;
// Sets a variable if it is a connection variable; ignores others.
void set_ansible_var(const std::string& name, const std::string& value, AnsibleVars& vars);
// Adds a host, or all hosts of a pattern: "node[01:20].example.org", "host:2222".
void add_ansible_hosts(const std::string& pattern, const AnsibleVars& vars, const std::string& where,
                       ServerListBuilder& list);

}  // namespace remote::project
