#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <remote/cancel.hpp>
#include <remote/error.hpp>

#include "config/config.hpp"
#include "ssh/connection.hpp"

namespace remote::ssh {

// Asks the user at the terminal for a secret (a password, a key's passphrase). Returns nullopt if there is no
// terminal or nothing was typed. Called by one thread at a time.
using AskSecret = std::function<std::optional<std::string>(const std::string& prompt)>;

// The longest time for connecting; nullopt: connect_timeout in configs.yaml.
using ConnectLimit = std::optional<std::chrono::seconds>;

// Creates connections. One object serves all threads of a command, and they may call connect() at the same
// time.
class Connector {
 public:
  virtual ~Connector() = default;
  // Connects and authenticates. Throws Error without the server's name; Unreachable if the server cannot be
  // reached.
  virtual std::unique_ptr<Connection> connect(const config::Server& server, const Cancel& cancel,
                                              ConnectLimit limit = {}) = 0;
  // Like connect(), but logs in to the server with only this private key: no other key, no password, and no
  // question except for the key's passphrase. Uses the agent only if it holds exactly this key and the file
  // cannot be used. Jump hosts are used as usual. This proves that the key is sufficient. Only the real
  // connector supports it.
  virtual std::unique_ptr<Connection> connect_with_key(const config::Server& server,
                                                       const std::filesystem::path& key,
                                                       const Cancel& cancel);
};

struct ConnectorOptions {
  AskSecret ask;
  // Called for each host key that is accepted on first use: one call at a time, on the connecting thread.
  std::function<void(const NewHostKey&)> on_new_host_key;
  // Called once for each unusable key, before a password is asked for: one call at a time, and never while
  // `ask` is running.
  std::function<void(const Error&)> on_login_problem;
  std::filesystem::path user_config;  // default: ~/.ssh/config
  std::filesystem::path masters;      // the folder of our control sockets; default: the user's own folder
  std::filesystem::path known_hosts;  // default: ssh_config's UserKnownHostsFile, else ~/.ssh/known_hosts
};

// The real connector, over libssh or an OpenSSH master, depending on `connection`. `config` contains this
// setting, host_keys and connect_timeout_s.
std::unique_ptr<Connector> make_connector(const config::Config& config, ConnectorOptions options = {});

}  // namespace remote::ssh
