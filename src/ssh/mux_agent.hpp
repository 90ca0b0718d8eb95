#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <poll.h>

#include "ssh/agent_link.hpp"
#include "ssh/mux_reverse.hpp"

namespace remote::ssh {

// Agent forwarding over an OpenSSH master, which cannot forward an agent for a single command. Instead, a
// socket on the server, for this login only, forwards its connections to this process. Not thread-safe.
class MuxAgent {
 public:
  // Waits for the server's answer. Throws Error if the server does not allow it (AllowStreamLocalForwarding).
  // `socket` is the agent's local socket, `permissions` the permitted signatures (login_permission).
  MuxAgent(const std::filesystem::path& control, const std::filesystem::path& socket,
           std::set<std::string> permissions, std::chrono::milliseconds limit, const Cancel& cancel);

  // The socket on the server, for SSH_AUTH_SOCK there. sshd does not remove it at the end, so the command
  // that uses it must.
  const std::string& there() const { return reverse_.at().path; }
  // Passes on requests and answers. Returns true if anything was done.
  bool serve();
  void add_to(std::vector<pollfd>& fds) const;

 private:
  struct Link {
    UniqueFd fd;
    AgentLink talk;
  };

  std::string socket_;
  std::set<std::string> permissions_;
  MuxReverse reverse_;
  std::vector<Link> links_;
};

}  // namespace remote::ssh
