#pragma once

#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "base/files.hpp"

namespace remote::ssh {

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

  // Which keys are shown from now on: public keys in the wire format (the base64 of a .pub file, decoded);
  // none named: all.
  void show(std::set<std::string> keys);
  // The socket that libssh is to use as the agent's. Lives as long as this object.
  std::string path() const { return (folder_.path() / "agent").string(); }

 private:
  void run();
  void serve(int client);

  std::string agent_;
  std::mutex mutex_;
  std::set<std::string> keys_;
  TempFolder folder_;  // mode 0700
  UniqueFd listener_;
  UniqueFd stop_read_;
  UniqueFd stop_write_;
  std::thread thread_;
};

// The body of an agent's list of keys with only the named ones left; an empty list for a body that is
// malformed.
std::string filter_identities(std::string_view answer, const std::set<std::string>& keys);

}  // namespace remote::ssh
