#include "ssh/agent_relay.hpp"

#include <chrono>
#include <cstdint>

#include "ssh/agent.hpp"

namespace remote::ssh {
namespace {

// An agent may ask its owner before it signs.
constexpr std::chrono::seconds answer_limit{60};
// sshd opens one a connection of the command's; more than this is not what we are here for.
constexpr std::size_t most_links = 16;

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
  bool ended = false;
};

AgentRelay::AgentRelay(ssh_session session) : session_(session) {
  callbacks_.userdata = this;
  callbacks_.channel_open_request_auth_agent_function = on_open;
  ssh_callbacks_init(&callbacks_);
  ssh_set_callbacks(session_, &callbacks_);
}

AgentRelay::~AgentRelay() = default;

void AgentRelay::use(const std::filesystem::path& socket, std::set<std::string> keys) {
  socket_ = socket.string();
  keys_ = std::move(keys);
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

// Passes the next question on, if it is permitted, and its answer back; false when there is no whole
// question.
bool AgentRelay::answer(Link& link) {
  std::string_view view = link.asked;
  const auto size = take_agent_number(view);
  if (!size || view.size() < *size) {
    return false;
  }
  const std::string question(view.substr(0, *size));
  link.asked.erase(0, 4 + std::size_t{*size});
  const bool listing = is_agent_list_request(question);
  const auto key = agent_signing_key(question);
  std::optional<std::string> reply;
  if (!listing && (!key || !keys_.contains(*key))) {
    reply = agent_refusal;
  } else if (on()) {
    if (!link.agent) {
      link.agent = connect_agent(socket_);
    }
    if (link.agent && send_agent_message(link.agent.get(), question)) {
      reply = read_agent_message(link.agent.get(), -1, answer_limit);
    }
    if (reply && listing) {
      reply = filter_identities(*reply, keys_);
    }
  }
  if (!reply) {
    link.ended = true;
    return true;
  }
  const std::string message = agent_number(static_cast<std::uint32_t>(reply->size())) + *reply;
  ssh_channel_write(link.channel, message.data(), static_cast<std::uint32_t>(message.size()));
  return true;
}

bool AgentRelay::serve() {
  bool done = false;
  for (const auto& link : links_) {
    while (!link->ended && answer(*link)) {
      done = true;
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
