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

// SSH agents (draft-miller-ssh-agent). They are asked over a local socket by messages: a length of four
// bytes, then the body.

namespace remote::ssh {

// A number as the protocol has it: four bytes, the highest first.
std::string agent_number(std::uint32_t value);
// Takes one off the front; nullopt when there are not enough bytes.
std::optional<std::uint32_t> take_agent_number(std::string_view& data);

// The body of the next message, for which it waits; nullopt at the end, on an error, past `limit` (0: none),
// or when `stop` (-1: none) becomes readable.
std::optional<std::string> read_agent_message(int fd, int stop,
                                              std::chrono::milliseconds limit = std::chrono::milliseconds(0));
// False when the other side is gone.
bool send_agent_message(int fd, const std::string& body);

// No message is longer: what announces more is not an agent.
inline constexpr std::size_t longest_agent_message = std::size_t{256} * 1024;

// Whether the message asks for the list of keys.
bool is_agent_list_request(std::string_view message);
// The public key (wire format) with which the message asks for a signature; nullopt for any other message.
std::optional<std::string> agent_signing_key(std::string_view message);
// What a forwarded agent may sign: that `user` logs in with `key` at the server with `host_key` (all in the
// wire format). Empty fields give an empty text, which permits nothing.
std::string login_permission(const std::string& key, const std::string& user, const std::string& host_key);
// The keys of such permissions.
std::set<std::string> permitted_keys(const std::set<std::string>& permissions);
// Whether the message asks for a signature of such a login. Only the authentication method that names the
// server's host key (publickey-hostbound, OpenSSH 8.9) will do: any other signature is good at every server.
bool is_permitted_login(std::string_view message, const std::set<std::string>& permissions);
// The body by which an agent says no.
inline constexpr const char* agent_refusal = "\x05";

// An SSH agent that shows only some of another agent's keys. libssh offers a server all keys of the agent,
// one by one; with more than sshd's MaxAuthTries (6) in it the right one is never reached, and with
// IdentitiesOnly the others must not be shown at all.
class AgentFilter {
 public:
  // `agent` is the real agent's socket. Throws Error when there is no place for an own one.
  explicit AgentFilter(std::string agent);
  ~AgentFilter();
  AgentFilter(const AgentFilter&) = delete;
  AgentFilter& operator=(const AgentFilter&) = delete;

  // From now on only these keys are shown: public keys in the wire format (the base64 of a .pub file,
  // decoded). An empty set shows all.
  void show(std::set<std::string> keys);
  // The key with which the agent was last asked to sign: libssh asks only for a key that the server takes.
  // Empty: it was not asked.
  std::string last_signing_key() const;
  // How many keys were shown last.
  std::size_t shown() const;
  // The socket that libssh is to use as the agent's. Lives as long as this object.
  std::string path() const { return (folder_.path() / "agent").string(); }

 private:
  void run();
  void serve(int client);

  std::string agent_;
  mutable std::mutex mutex_;  // guards the next three
  std::set<std::string> keys_;
  std::string last_signing_key_;
  std::size_t shown_ = 0;
  TempFolder folder_;  // mode 0700
  UniqueFd listener_;
  Pipe stop_ = make_pipe();  // its writing end is closed to stop the thread
  std::thread thread_;
};

// The body of an agent's list of keys with only the named ones left; an empty list for a body that is
// malformed.
std::string filter_identities(std::string_view answer, const std::set<std::string>& keys);

// An ssh-agent(1) that holds a few key files, so that no other keys are forwarded. It ends with the object,
// and also when this process dies.
class KeyAgent {
 public:
  // Starts it. Throws Error where ssh-agent cannot be started.
  KeyAgent();
  ~KeyAgent();
  KeyAgent(const KeyAgent&) = delete;
  KeyAgent& operator=(const KeyAgent&) = delete;

  // False when the key cannot be had without asking a person: it has a passphrase, or is not there.
  bool add(const std::filesystem::path& key, const Cancel& cancel);
  std::filesystem::path socket() const { return folder_.path() / "agent"; }

 private:
  TempFolder folder_;  // mode 0700
  std::optional<Subprocess> keeper_;
  pid_t agent_ = -1;
};

}  // namespace remote::ssh
