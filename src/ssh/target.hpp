#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/config.hpp"

namespace remote::ssh {

// How to reach one server: every setting with its origin. configs.yaml overrides ~/.ssh/config, which
// overrides the defaults. `remote servers` prints it.
struct Target {
  std::string name;   // the server's name in configs.yaml; for a jump host, its name as given
  std::string alias;  // the host as given, which is matched against the patterns in ~/.ssh/config
  config::Setting<std::string> host;
  config::Setting<int> port{22};
  config::Setting<std::string> user;

  // Keys to try, in this order. identities_given: the user named them, so a missing one is an error.
  std::vector<config::Setting<std::filesystem::path>> identities;
  bool identities_given = false;
  bool only_first_identity = false;  // no other login method and no certificate is used
  std::vector<config::Setting<std::filesystem::path>> certificates;
  config::Setting<bool> identities_only;
  config::Setting<std::string> identity_agent;  // the path of a socket; "none": no agent; "": SSH_AUTH_SOCK

  config::Setting<std::string> password;  // at most one of these three is set
  config::Setting<std::string> password_env;
  config::Setting<std::string> password_command;

  std::vector<Target> jumps;                // this machine connects to the first one
  config::Setting<std::string> proxy_jump;  // as given, for display
  config::Setting<std::string> proxy_command;

  config::Setting<std::vector<std::filesystem::path>> known_hosts;  // new keys are written to the first one
  config::Setting<std::string> host_key_alias;
  config::Setting<config::HostKeys> host_keys;
  config::Setting<bool> hash_known_hosts;
  config::Setting<bool> compression;
  config::Setting<int> connect_timeout_s{10};

  config::Setting<config::ConnectBy> connect_by;
  // The possible control sockets of the user's own OpenSSH master (ControlPath), because versions of OpenSSH
  // expand it differently.
  std::vector<std::filesystem::path> control_paths;
  config::Setting<bool> gssapi;
  std::string
      openssh_alone;  // a setting in ~/.ssh/config that only OpenSSH supports and that may be needed; or ""

  // "user@host:port".
  std::string describe() const;
  // The prompt for the server's password, which includes the jump hosts: "user@host:port via user@jump:port".
  std::string password_prompt() const;
  // The SSH agent's socket; empty if there is none or it is disabled.
  std::string agent_socket() const;
};

// Resolves a server of configs.yaml. `user_config` replaces ~/.ssh/config; empty: that file. Throws Error
// (usage) if the files are contradictory or invalid (a loop of jump hosts, an invalid port).
Target resolve(const config::Config& config, const config::Server& server,
               const std::filesystem::path& user_config);

}  // namespace remote::ssh
