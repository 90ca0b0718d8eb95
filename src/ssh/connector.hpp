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

// Asks the person at the terminal for a secret (a password, a key's passphrase): returns nullopt when there
// is no terminal or nothing was typed. Called by one thread at a time.
using AskSecret = std::function<std::optional<std::string>(const std::string& prompt)>;

// How long connecting may take at most; nullopt: as long as configs.yaml (connect_timeout) allows.
using ConnectLimit = std::optional<std::chrono::seconds>;

// Makes connections. One object serves all threads of a command: connect() may be called from several at
// once.
class Connector {
 public:
  virtual ~Connector() = default;
  // Connects and authenticates. Throws Error (Unreachable where the server cannot be reached), without server
  // name.
  virtual std::unique_ptr<Connection> connect(const config::Server& server, const Cancel& cancel,
                                              ConnectLimit limit = {}) = 0;
  // As connect(), but logs in to the server with this private key alone: no other key, no password, no
  // question but for the key's passphrase; the agent only where it holds this very key and the file cannot be
  // used. Jump hosts are passed as usual. Proves that the key is enough. Only the real connector can.
  virtual std::unique_ptr<Connection> connect_with_key(const config::Server& server,
                                                       const std::filesystem::path& key,
                                                       const Cancel& cancel);
};

struct ConnectorOptions {
  AskSecret ask;
  // Told of each host key that is accepted on first use: one call at a time, on the thread that connects.
  std::function<void(const NewHostKey&)> on_new_host_key;
  // Told once of each key that is of no use, before a password is asked for: one call at a time, and none
  // while `ask` is asking.
  std::function<void(const Error&)> on_login_problem;
  std::filesystem::path user_config;  // default: ~/.ssh/config
  std::filesystem::path masters;      // where our control sockets are; default: the user's own folder
  std::filesystem::path known_hosts;  // default: ssh_config's UserKnownHostsFile, else ~/.ssh/known_hosts
};

// The real one, over libssh or an OpenSSH master, as `connection` says. `config` gives that, host_keys and
// connect_timeout_s.
std::unique_ptr<Connector> make_connector(const config::Config& config, ConnectorOptions options = {});

}  // namespace remote::ssh
