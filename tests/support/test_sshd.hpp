#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/subprocess.hpp"
#include "config/config.hpp"
#include "ssh/connector.hpp"

namespace remote::test {

// A currently free port on 127.0.0.1.
int free_port();
// Runs ssh-keygen; throws if it fails.
void make_key(const std::filesystem::path& file, const std::string& type = "ed25519",
              const std::string& passphrase = "");

// Whether to connect over an OpenSSH master, as ctest's over_openssh.* tests require: REMOTE_TEST_CONNECTION.
bool over_openssh();

// A folder with a client's files: keys, ~/.ssh/config, known_hosts.
class TestClient {
 public:
  TestClient();
  ~TestClient();  // stops the masters
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;
  const std::filesystem::path& folder() const { return folder_.path(); }
  std::filesystem::path key() const { return folder_.path() / "key"; }
  std::filesystem::path masters() const { return folder_.path() / "m"; }
  std::filesystem::path known_hosts() const { return folder_.path() / "known_hosts"; }
  std::filesystem::path ssh_config() const { return folder_.path() / "ssh_config"; }
  std::string public_key() const;
  // A configuration without servers, and the connector's options for this folder.
  config::Config config() const;
  ssh::ConnectorOptions options() const;
  std::unique_ptr<ssh::Connector> connector() const;
  // The new host keys that the connectors have reported since the last call.
  std::vector<NewHostKey> take_new_host_keys() const;

 private:
  SigpipeGuard guard_;  // connections need one, as in each call of Project
  TempFolder folder_;
  std::shared_ptr<std::vector<NewHostKey>> new_keys_ = std::make_shared<std::vector<NewHostKey>>();
};

// A real sshd on 127.0.0.1 with its own host key. Any user can run it; only that user can log in, with the
// `authorized` keys. The destructor stops it and all of its session processes.
class TestSshd {
 public:
  explicit TestSshd(const std::string& authorized, std::vector<std::string> extra_config = {},
                    std::string host_key_type = "ed25519");
  ~TestSshd();
  TestSshd(const TestSshd&) = delete;
  TestSshd& operator=(const TestSshd&) = delete;

  int port() const { return port_; }
  pid_t pid() const { return process_->pid(); }
  const std::filesystem::path& folder() const { return folder_.path(); }
  std::string log() const;
  // The sshd_sessions() of this server.
  std::vector<pid_t> session_pids() const;
  // Sends a signal to all session processes; returns their pids.
  std::vector<pid_t> signal_sessions(int number) const;
  // Kills the session processes and waits until all have exited and closed their links: an exiting process is
  // no longer listed although its files are still open.
  void kill_sessions() const;
  // Changes the host key on the same port, as after a reinstallation.
  void change_host_key(const std::string& type = "ed25519");
  void stop();
  void start();
  // The server's entry as in configs.yaml, with `key` as private_key.
  config::Server server(const std::filesystem::path& key, const std::string& name = "one") const;

 private:
  TempFolder folder_;
  std::vector<std::string> extra_;
  int port_;
  std::unique_ptr<Subprocess> process_;
};

// The sshd processes that serve the connections of a listener: one per connection if root runs it, two if a
// user does.
std::vector<pid_t> sshd_sessions(pid_t listener);

// The login name of the user who runs the tests.
std::string own_user();

// Serves the connection until it throws, or for longer than a broken connection should take.
void pump_until_broken(ssh::Connection& connection);

}  // namespace remote::test
