#pragma once

#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>

#include "base/files.hpp"

namespace remote::ssh {

// What a forwarded SSH agent is asked by one who has connected to it on a server, and what it answers; how
// the bytes travel is for others (AgentRelay, MuxAgent). Two kinds of questions reach the agent: the request
// for its list, whose answer is cut down to the permitted keys, and the request to sign a permitted login.
// They are answered one after the other, and the agent is never waited for. One thread.
class AgentLink {
 public:
  // Has been said there.
  void hear(std::string_view data);
  // Goes on; true when something was done. The agent's local socket, and what may be signed
  // (login_permission).
  bool serve(const std::string& socket, const std::set<std::string>& permissions);
  // What is to be said there: take off what could be sent.
  std::string& unsent() { return unsent_; }
  // Adds the descriptor that becomes readable when the agent answers.
  void add_to(std::vector<pollfd>& fds) const;
  // Nothing more is said.
  void end() { ended_ = true; }
  bool ended() const { return ended_; }

 private:
  bool take_question(const std::string& socket, const std::set<std::string>& permissions);
  bool take_answer(const std::set<std::string>& permissions);
  void say(const std::string& body);

  std::string asked_;
  UniqueFd agent_;
  std::string answer_;    // as much of the agent's as has come
  bool waiting_ = false;  // for it
  bool listing_ = false;  // it is the list of keys
  std::chrono::steady_clock::time_point give_up_;
  std::string unsent_;
  int questions_ = 0;
  bool ended_ = false;
};

// The other side may open one for each connection of a command; more than this is not what we are here for.
inline constexpr std::size_t most_agent_links = 16;

}  // namespace remote::ssh
