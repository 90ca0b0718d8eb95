#pragma once

#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>

#include "base/files.hpp"

namespace remote::ssh {

// One connection to a forwarded SSH agent: the requests of a client on the server, and the agent's answers.
// AgentRelay and MuxAgent transport the bytes. Only two kinds of requests reach the agent: for its list of
// keys, which is reduced to the permitted ones, and for signatures of permitted logins. They are answered one
// after the other, without ever blocking. Not thread-safe.
class AgentLink {
 public:
  // Adds data received from the client on the server.
  void hear(std::string_view data);
  // Makes progress, and returns whether anything was done. `socket` is the agent's local socket;
  // `permissions` are the permitted signatures (login_permission).
  bool serve(const std::string& socket, const std::set<std::string>& permissions);
  // The data to send to the client. The caller removes what it has sent.
  std::string& unsent() { return unsent_; }
  // Adds the descriptor that becomes readable when the agent answers.
  void add_to(std::vector<pollfd>& fds) const;
  // Sends and answers nothing more.
  void end() { ended_ = true; }
  bool ended() const { return ended_; }

 private:
  bool take_question(const std::string& socket, const std::set<std::string>& permissions);
  bool take_answer(const std::set<std::string>& permissions);
  void say(const std::string& body);

  std::string asked_;
  UniqueFd agent_;
  std::string answer_;    // the part of the agent's answer that has arrived
  bool waiting_ = false;  // for the answer
  bool listing_ = false;  // the answer is the list of keys
  std::chrono::steady_clock::time_point give_up_;
  std::string unsent_;
  int questions_ = 0;
  bool ended_ = false;
};

// A command may open several connections to the agent at once; any beyond this number are refused.
inline constexpr std::size_t most_agent_links = 16;

}  // namespace remote::ssh
