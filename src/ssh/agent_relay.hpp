#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <libssh/callbacks.h>

#include "base/files.hpp"
#include "ssh/libssh.hpp"

namespace remote::ssh {

// Agent forwarding on one session: channels that the server opens to reach our SSH agent. libssh says when
// one comes; the questions are answered from serve(), message by message, because an agent's messages are
// short. Two kinds reach the agent: the request for its list, whose answer is cut down to the permitted keys,
// and the request to sign with one of these. Used by the session's thread.
class AgentRelay {
 public:
  // From now on libssh tells of such channels. The object must outlive the session, but close() comes before
  // its end.
  explicit AgentRelay(ssh_session session);
  ~AgentRelay();
  AgentRelay(const AgentRelay&) = delete;
  AgentRelay& operator=(const AgentRelay&) = delete;

  // The agent's local socket, and the keys that may be used (wire format). An empty path: channels are
  // refused, and open ones get no more answers.
  void use(const std::filesystem::path& socket, std::set<std::string> keys);
  bool on() const { return !socket_.empty(); }
  // Answers what was asked; true when something was done.
  bool serve();
  void close();

 private:
  struct Link;
  static ssh_channel on_open(ssh_session session, void* self);
  bool answer(Link& link);

  ssh_session session_;
  ssh_callbacks_struct callbacks_{};
  std::string socket_;
  std::set<std::string> keys_;
  std::vector<std::unique_ptr<Link>> links_;
};

}  // namespace remote::ssh
