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

// Agent forwarding in one session: channels that the server opens to reach our SSH agent. libssh reports new
// channels, and serve() answers the requests. Used only by the session's thread.
class AgentRelay {
 public:
  // Registers with libssh for such channels. The object must outlive the session, but call close() before the
  // session ends.
  explicit AgentRelay(ssh_session session);
  ~AgentRelay();
  AgentRelay(const AgentRelay&) = delete;
  AgentRelay& operator=(const AgentRelay&) = delete;

  // Sets the agent's local socket and the permitted signatures (login_permission). If the path is empty,
  // channels are refused, and open ones get no more answers.
  void use(const std::filesystem::path& socket, std::set<std::string> permissions);
  bool on() const { return !socket_.empty(); }
  // Passes on requests and answers. Returns true if anything was done.
  bool serve();
  // Adds the descriptors that become readable when the agent answers.
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
