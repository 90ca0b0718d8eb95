#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/yaml_reader.hpp"
#include "project/import/import.hpp"

// What the readers of the forms share. Only src/project/import includes it.

namespace remote::project {

// A server as a file has it: texts, nothing checked. "" is not given.
struct FoundServer {
  std::string name;      // as the file names it; also its address where there is no other
  std::string hostname;  // default: the name
  std::string user;
  std::string port;
  std::string key;  // a private key's path
  std::string internal_address;
  std::string proxy_jump;
  std::string where;  // "inventory:3"
};

// Collects servers, and checks them.
class ServerListBuilder {
 public:
  ServerListBuilder(ServerListForm form, std::string file, std::filesystem::path folder,
                    std::filesystem::path project);

  const std::string& file() const { return file_; }
  // "hosts:3"
  std::string where(int line) const { return file_ + ":" + std::to_string(line); }
  // Takes in a server; one of a name that was there before changes nothing. A name that configs.yaml cannot
  // have gives way to server-1, server-2, …. Throws Error (usage).
  void add(const FoundServer& found);
  void leave_out(const std::string& server, const std::string& what);
  // Throws Error (usage) when there is no server.
  ServerList take();

 private:
  std::string file_;
  std::filesystem::path folder_;
  std::filesystem::path project_;
  ServerList list_;
  std::set<std::string> names_;  // as the file has them
  std::size_t count_ = 0;        // of calls
};

// The text of a scalar; "" for null. Throws Error (usage) for a list or a map.
std::string scalar_text(const config::YamlNode& node, const std::string& file);
// The same of a key of a map; "" where it is not there.
std::string value_of(const config::YamlNode& map, const std::string& key, const std::string& file);

void read_hostfile(std::string_view text, ServerListBuilder& list);
void read_ssh_hosts(std::string_view text, ServerListBuilder& list);
void read_skypilot(const config::YamlNode& root, ServerListBuilder& list);
void read_dstack(const config::YamlNode& root, ServerListBuilder& list);
void read_ansible_ini(std::string_view text, ServerListBuilder& list);
void read_ansible_yaml(const config::YamlNode& root, ServerListBuilder& list);

// Variables of Ansible by name; of a host, those of its groups are in it too.
using AnsibleVars = std::map<std::string, std::string, std::less<>>;
// Sets one of the variables that tell how a host is reached; others are passed by.
void set_ansible_var(const std::string& name, const std::string& value, AnsibleVars& vars);
// A host, or a pattern of several: "node[01:20].example.org", "host:2222".
void add_ansible_hosts(const std::string& pattern, const AnsibleVars& vars, const std::string& where,
                       ServerListBuilder& list);

}  // namespace remote::project
