#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include <remote/cancel.hpp>
#include <sys/types.h>

#include "base/files.hpp"
#include "base/subprocess.hpp"

// The SSH agent protocol (draft-miller-ssh-agent). Messages over a local socket consist of a length of four
// bytes and the body.

namespace remote::ssh {

// Encodes a number for the protocol: four bytes, big-endian.
std::string agent_number(std::uint32_t value);
// Removes a number from the front; nullopt if there are not enough bytes.
std::optional<std::uint32_t> take_agent_number(std::string_view& data);

// Waits for the next message and returns its body; nullopt at EOF, on an error, after `limit` (0: none), or
// when `stop` (-1: none) becomes readable.
std::optional<std::string> read_agent_message(int fd, int stop,
                                              std::chrono::milliseconds limit = std::chrono::milliseconds(0));
// Returns false if the peer has closed the connection.
bool send_agent_message(int fd, const std::string& body);

// No real message is longer, so a peer that announces a longer one is not an agent.
inline constexpr std::size_t longest_agent_message = std::size_t{256} * 1024;

bool is_agent_list_request(std::string_view message);
// The public key (wire format) in a request for a signature; nullopt for any other message.
std::optional<std::string> agent_signing_key(std::string_view message);
// Describes the only signature that a forwarded agent may make: `user` logs in with `key` to the server with
// `host_key` (all in the wire format). If a field is empty, returns an empty text, which permits nothing.
std::string login_permission(const std::string& key, const std::string& user, const std::string& host_key);
std::set<std::string> permitted_keys(const std::set<std::string>& permissions);
// Whether the message requests a signature for a permitted login. Only the authentication method that names
// the server's host key is accepted (publickey-hostbound, OpenSSH 8.9), because any other signature would be
// valid on every server.
bool is_permitted_login(std::string_view message, const std::set<std::string>& permissions);
inline constexpr const char* agent_refusal = "\x05";

// An SSH agent that shows only some of another agent's keys. libssh offers a server all keys of the agent,
// one by one. If there are more than sshd's MaxAuthTries (6), it may never reach the right one, and with
// IdentitiesOnly the others must not be shown at all.
class AgentFilter {
 public:
  // `agent` is the real agent's socket. Throws Error if it cannot create its own socket.
  explicit AgentFilter(std::string agent);
  ~AgentFilter();
  AgentFilter(const AgentFilter&) = delete;
  AgentFilter& operator=(const AgentFilter&) = delete;

  // Shows only these keys from now on. They are public keys in the wire format (the base64 of a .pub file,
  // decoded). An empty set shows all keys.
  void show(std::set<std::string> keys);
  // The key that the agent was last asked to sign with. libssh requests a signature only for a key that the
  // server accepts. Empty: none was requested.
  std::string last_signing_key() const;
  // The number of keys shown last.
  std::size_t shown() const;
  // The socket to give to libssh as the agent's. It exists as long as this object.
  std::string path() const { return (folder_.path() / "agent").string(); }

 private:
  void run();
  void serve(int client);

  std::string agent_;
  mutable std::mutex mutex_;  // guards the next three members
  std::set<std::string> keys_;
  std::string last_signing_key_;
  std::size_t shown_ = 0;
  TempFolder folder_;  // mode 0700
  UniqueFd listener_;
  Pipe stop_ = make_pipe();  // closing its write end stops the thread
  std::thread thread_;
};

// Removes all other keys from an agent's list of keys. Returns an empty list if the body is malformed.
std::string filter_identities(std::string_view answer, const std::set<std::string>& keys);

// An ssh-agent(1) process with a few key files, so that no other keys are forwarded. It is stopped by the
// destructor, and also if this process dies.
class KeyAgent {
 public:
  // Starts the process. Throws Error on failure.
  KeyAgent();
  ~KeyAgent();
  KeyAgent(const KeyAgent&) = delete;
  KeyAgent& operator=(const KeyAgent&) = delete;

  // Returns false if the key cannot be loaded without asking the user, because it has a passphrase, or if it
  // does not exist.
  bool add(const std::filesystem::path& key, const Cancel& cancel);
  std::filesystem::path socket() const { return folder_.path() / "agent"; }

 private:
  TempFolder folder_;  // mode 0700
  std::optional<Subprocess> keeper_;
  pid_t agent_ = -1;
};

}  // namespace remote::ssh
