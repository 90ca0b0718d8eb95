#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/config.hpp"

namespace remote::ssh {

// How one server is reached: every setting with the place it came from. configs.yaml overrides ~/.ssh/config,
// which overrides the defaults. `remote servers` prints it.
struct Target {
  std::string name;   // the server's name in configs.yaml; a jump host's as it was given
  std::string alias;  // the host as it was given, which ~/.ssh/config's patterns match
  config::Setting<std::string> host;
  config::Setting<int> port{22};
  config::Setting<std::string> user;

  // Keys to try, in this order. identities_given: the user named them, so a missing one is worth an error.
  std::vector<config::Setting<std::filesystem::path>> identities;
  bool identities_given = false;
  bool only_first_identity = false;  // nothing else logs in, no certificate for it either
  std::vector<config::Setting<std::filesystem::path>> certificates;
  config::Setting<bool> identities_only;
  config::Setting<std::string> identity_agent;  // a socket's path; "none": no agent; "": SSH_AUTH_SOCK

  config::Setting<std::string> password;  // at most one of the three is set
  config::Setting<std::string> password_env;
  config::Setting<std::string> password_command;

  std::vector<Target> jumps;                // first the one that this machine connects to
  config::Setting<std::string> proxy_jump;  // as it was given, for people
  config::Setting<std::string> proxy_command;

  config::Setting<std::vector<std::filesystem::path>> known_hosts;  // new keys go to the first
  config::Setting<std::string> host_key_alias;
  config::Setting<config::HostKeys> host_keys;
  config::Setting<bool> hash_known_hosts;
  config::Setting<bool> compression;
  config::Setting<int> connect_timeout_s{10};

  config::Setting<config::ConnectBy> connect_by;
  // Where the control socket of the user's own OpenSSH master would be (ControlPath): what versions of
  // OpenSSH make of it.
  std::vector<std::filesystem::path> control_paths;
  config::Setting<bool> gssapi;
  std::string
      openssh_alone;  // what of ~/.ssh/config only OpenSSH understands, and which may be needed; or ""

  // "user@host:port".
  std::string describe() const;
  // The same with the way to it, as a question for its password calls it: "user@host:port via
  // user@jump:port".
  std::string password_prompt() const;
  // The SSH agent's socket; empty when there is none or it is switched off.
  std::string agent_socket() const;
};

// Resolves a server of configs.yaml. `user_config` stands in for ~/.ssh/config; empty: that one. Throws Error
// (usage) where the files contradict themselves (a loop of jump hosts, a port that is none).
Target resolve(const config::Config& config, const config::Server& server,
               const std::filesystem::path& user_config);

}  // namespace remote::ssh
