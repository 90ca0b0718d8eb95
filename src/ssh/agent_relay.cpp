#include "ssh/agent_relay.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include <unistd.h>

#include "ssh/agent.hpp"
#include "ssh/local_socket.hpp"

namespace remote::ssh {
namespace {

// An agent may ask its owner before it signs.
constexpr std::chrono::seconds answer_limit{60};
// sshd opens one a connection of the command's; more than this is not what we are here for.
constexpr std::size_t most_links = 16;
// A login asks three or four. A server that asks without end and reads no answer would fill our memory.
constexpr int most_questions = 100;

}  // namespace

// One channel, and our connection to the agent for it.
struct AgentRelay::Link {
  explicit Link(ssh_channel one) : channel(one) {
    callbacks.userdata = this;
    callbacks.channel_data_function = [](ssh_session, ssh_channel, void* data, std::uint32_t size, int,
                                         void* self) {
      auto& link = *static_cast<Link*>(self);
      if (link.asked.size() + size > 2 * longest_agent_message) {
        link.ended = true;
      } else {
        link.asked.append(static_cast<const char*>(data), size);
      }
      return static_cast<int>(size);
    };
    callbacks.channel_eof_function = [](ssh_session, ssh_channel, void* self) {
      static_cast<Link*>(self)->ended = true;
    };
    callbacks.channel_close_function = [](ssh_session, ssh_channel, void* self) {
      static_cast<Link*>(self)->ended = true;
    };
    ssh_callbacks_init(&callbacks);
    ssh_set_channel_callbacks(channel, &callbacks);
  }
  ~Link() {
    ssh_remove_channel_callbacks(channel, &callbacks);
    ssh_channel_free(channel);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  ssh_channel channel;
  ssh_channel_callbacks_struct callbacks{};
  std::string asked;
  UniqueFd agent;
  std::string answer;    // as much of the agent's as has come
  bool waiting = false;  // for it
  bool listing = false;  // it is the list of keys
  std::chrono::steady_clock::time_point give_up;
  std::string unsent;  // for the channel, whose window may be full
  int questions = 0;
  bool ended = false;

  void say(const std::string& body) {
    unsent += agent_number(static_cast<std::uint32_t>(body.size())) + body;
  }
};

AgentRelay::AgentRelay(ssh_session session) : session_(session) {
  callbacks_.userdata = this;
  callbacks_.channel_open_request_auth_agent_function = on_open;
  ssh_callbacks_init(&callbacks_);
  ssh_set_callbacks(session_, &callbacks_);
}

AgentRelay::~AgentRelay() = default;

void AgentRelay::use(const std::filesystem::path& socket, std::set<std::string> permissions) {
  socket_ = socket.string();
  permissions_ = std::move(permissions);
}

ssh_channel AgentRelay::on_open(ssh_session session, void* self) {
  auto& relay = *static_cast<AgentRelay*>(self);
  if (!relay.on() || relay.links_.size() >= most_links) {
    return nullptr;
  }
  ssh_channel channel = ssh_channel_new(session);
  if (channel != nullptr) {
    relay.links_.push_back(std::make_unique<Link>(channel));
  }
  return channel;
}

// Passes the next question on, or refuses it; false when there is no whole one.
bool AgentRelay::take_question(Link& link) {
  std::string_view view = link.asked;
  const auto size = take_agent_number(view);
  if (!size || view.size() < *size) {
    return false;
  }
  if (++link.questions > most_questions) {
    link.ended = true;
    return true;
  }
  const std::string question(view.substr(0, *size));
  link.asked.erase(0, 4 + std::size_t{*size});
  link.listing = is_agent_list_request(question);
  if (!link.listing && !is_permitted_login(question, permissions_)) {
    link.say(agent_refusal);
    return true;
  }
  if (!link.agent) {
    link.agent = connect_local(socket_);
  }
  if (!on() || !link.agent || !send_agent_message(link.agent.get(), question)) {
    link.ended = true;
    return true;
  }
  link.waiting = true;
  link.give_up = std::chrono::steady_clock::now() + answer_limit;
  return true;
}

// Takes what has come of the agent's answer; false when it is nothing.
bool AgentRelay::take_answer(Link& link) {
  pollfd slot{link.agent.get(), POLLIN, 0};
  if (::poll(&slot, 1, 0) <= 0) {
    link.ended = std::chrono::steady_clock::now() > link.give_up;
    return link.ended;
  }
  std::array<char, 4096> piece{};
  const ssize_t count = uninterrupted([&] { return ::read(link.agent.get(), piece.data(), piece.size()); });
  if (count > 0) {
    link.answer.append(piece.data(), static_cast<std::size_t>(count));
  }
  std::string_view view = link.answer;
  const auto size = take_agent_number(view);
  link.ended = count <= 0 || (size && *size > longest_agent_message);
  if (!link.ended && size && view.size() >= *size) {
    const std::string body(view.substr(0, *size));
    link.answer.clear();
    link.waiting = false;
    link.say(link.listing ? filter_identities(body, permitted_keys(permissions_)) : body);
  }
  return true;
}

void AgentRelay::add_to(std::vector<pollfd>& fds) const {
  for (const auto& link : links_) {
    if (link->waiting) {
      fds.push_back({link->agent.get(), POLLIN, 0});
    }
  }
}

bool AgentRelay::serve() {
  bool done = false;
  for (const auto& link : links_) {
    while (!link->ended && (link->waiting ? take_answer(*link) : take_question(*link))) {
      done = true;
    }
    if (!link->unsent.empty()) {
      const int count = ssh_channel_write(link->channel, link->unsent.data(),
                                          static_cast<std::uint32_t>(link->unsent.size()));
      link->ended = link->ended || count < 0;
      link->unsent.erase(0, static_cast<std::size_t>(std::max(count, 0)));
      done = done || count > 0;
    }
    if (link->ended) {
      ssh_channel_close(link->channel);
    }
  }
  return std::erase_if(links_, [](const auto& link) { return link->ended; }) > 0 || done;
}

void AgentRelay::close() {
  socket_.clear();
  links_.clear();
}

}  // namespace remote::ssh
