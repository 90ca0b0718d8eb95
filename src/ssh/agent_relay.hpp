#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <libssh/callbacks.h>
#include <poll.h>

#include "ssh/libssh.hpp"

namespace remote::ssh {

// Agent forwarding on one session: channels that the server opens to reach our SSH agent. libssh says when
// one comes; the questions are answered from serve(). Used by the session's thread.
class AgentRelay {
 public:
  // From now on libssh tells of such channels. The object must outlive the session, but close() comes before
  // its end.
  explicit AgentRelay(ssh_session session);
  ~AgentRelay();
  AgentRelay(const AgentRelay&) = delete;
  AgentRelay& operator=(const AgentRelay&) = delete;

  // The agent's local socket, and what may be signed (login_permission). An empty path: channels are refused,
  // and open ones get no more answers.
  void use(const std::filesystem::path& socket, std::set<std::string> permissions);
  bool on() const { return !socket_.empty(); }
  // Passes on what was asked and what the agent answered; true when something was done.
  bool serve();
  // Adds what tells that there is something to serve: the agent's answers.
  void add_to(std::vector<pollfd>& fds) const;
  void close();

 private:
  struct Link;
  static ssh_channel on_open(ssh_session session, void* self);

  ssh_session session_;
  ssh_callbacks_struct callbacks_{};
  std::string socket_;
  std::set<std::string> permissions_;
  std::vector<std::unique_ptr<Link>> links_;
};

}  // namespace remote::ssh
