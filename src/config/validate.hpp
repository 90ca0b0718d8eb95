#pragma once

#include <optional>
#include <string>

// Checks for values in configs.yaml. Each returns the problem with a value, or nullopt if it is valid.
// `remote init` and the loader use the same checks.

namespace remote::config {

// The project's name, used as a folder on the servers and as part of an environment's name.
std::optional<std::string> name_problem(const std::string& name);
// An address, a host name, or an alias in ~/.ssh/config. It is used in command lines and in known_hosts.
std::optional<std::string> host_problem(const std::string& host);
std::optional<std::string> user_problem(const std::string& user);
// [USER@]HOST[:PORT], several separated by commas, or "none".
std::optional<std::string> proxy_jump_problem(const std::string& jumps);
// A path that must be inside the project.
std::optional<std::string> inside_problem(const std::string& path);
// A path, here or on a server; rejects paths that contain `.git`.
std::optional<std::string> git_problem(const std::string& path);
// A path in the project, for a folder that remote writes to.
std::optional<std::string> written_folder_problem(const std::string& path);
// The project's folder on a server.
std::optional<std::string> remote_path_problem(const std::string& path);
// The agent's folder on a server.
std::optional<std::string> agent_folder_problem(const std::string& path);
// One component of a path.
std::optional<std::string> component_problem(const std::string& name);
std::optional<std::string> server_name_problem(const std::string& name);
// The name of a launch, in the history and in configs.yaml.
std::optional<std::string> launch_name_problem(const std::string& name);

struct HostPort {
  std::optional<std::string> user;
  std::string host;  // an IPv6 address without brackets
  std::optional<int> port;
};
// Splits "[USER@]HOST[:PORT]"; HOST is [IPv6], or without a port a bare IPv6 address. Throws Error (usage)
// with `where` as its what_failed().
HostPort parse_host_port(const std::string& text, const std::string& where);

}  // namespace remote::config
