#include "ssh/agent_link.hpp"

#include <array>
#include <cstdint>

#include <unistd.h>

#include "ssh/agent.hpp"
#include "ssh/local_socket.hpp"

namespace remote::ssh {
namespace {

using Clock = std::chrono::steady_clock;

// An agent may ask its owner before it signs.
constexpr std::chrono::seconds answer_limit{60};
// A login makes three or four requests. A server that sends requests endlessly, and reads no answers, would
// fill our memory.
constexpr int most_questions = 100;

}  // namespace

void AgentLink::hear(std::string_view data) {
  if (asked_.size() + data.size() > 2 * longest_agent_message) {
    ended_ = true;
  } else {
    asked_.append(data);
  }
}

void AgentLink::say(const std::string& body) {
  unsent_ += agent_number(static_cast<std::uint32_t>(body.size())) + body;
}

// Passes the next request on, or refuses it. Returns false if there is no complete one.
bool AgentLink::take_question(const std::string& socket, const std::set<std::string>& permissions) {
  std::string_view view = asked_;
  const auto size = take_agent_number(view);
  if (!size || view.size() < *size) {
    return false;
  }
  if (++questions_ > most_questions) {
    ended_ = true;
    return true;
  }
  const std::string question(view.substr(0, *size));
  asked_.erase(0, 4 + std::size_t{*size});
  listing_ = is_agent_list_request(question);
  if (!listing_ && !is_permitted_login(question, permissions)) {
    say(agent_refusal);
    return true;
  }
  if (!agent_) {
    agent_ = connect_local(socket);
  }
  if (socket.empty() || !agent_ || !send_agent_message(agent_.get(), question)) {
    ended_ = true;
    return true;
  }
  waiting_ = true;
  give_up_ = Clock::now() + answer_limit;
  return true;
}

// Reads more of the agent's answer. Returns false if nothing has arrived.
bool AgentLink::take_answer(const std::set<std::string>& permissions) {
  pollfd slot{agent_.get(), POLLIN, 0};
  if (::poll(&slot, 1, 0) <= 0) {
    ended_ = Clock::now() > give_up_;
    return ended_;
  }
  std::array<char, 4096> piece{};
  const ssize_t count = uninterrupted([&] { return ::read(agent_.get(), piece.data(), piece.size()); });
  if (count > 0) {
    answer_.append(piece.data(), static_cast<std::size_t>(count));
  }
  std::string_view view = answer_;
  const auto size = take_agent_number(view);
  ended_ = count <= 0 || (size && *size > longest_agent_message);
  if (!ended_ && size && view.size() >= *size) {
    const std::string body(view.substr(0, *size));
    answer_.clear();
    waiting_ = false;
    say(listing_ ? filter_identities(body, permitted_keys(permissions)) : body);
  }
  return true;
}

bool AgentLink::serve(const std::string& socket, const std::set<std::string>& permissions) {
  bool done = false;
  while (!ended_ && (waiting_ ? take_answer(permissions) : take_question(socket, permissions))) {
    done = true;
  }
  return done;
}

void AgentLink::add_to(std::vector<pollfd>& fds) const {
  if (waiting_) {
    fds.push_back({agent_.get(), POLLIN, 0});
  }
}

}  // namespace remote::ssh
