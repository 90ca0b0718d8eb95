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

// Agent forwarding over an OpenSSH master, which forwards none by itself for one command: a socket on the
// server, for this login alone, whose connections come here. One thread.
class MuxAgent {
 public:
  // Waits for the server's answer. Throws Error when it does not allow it (AllowStreamLocalForwarding).
  // The agent's local socket, and what may be signed (login_permission).
  MuxAgent(const std::filesystem::path& control, const std::filesystem::path& socket,
           std::set<std::string> permissions, std::chrono::milliseconds limit, const Cancel& cancel);

  // The socket on the server, SSH_AUTH_SOCK there. sshd does not remove it at the end: who uses it does.
  const std::string& there() const { return reverse_.at().path; }
  // Passes on what was asked and what the agent answered; true when something was done.
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
