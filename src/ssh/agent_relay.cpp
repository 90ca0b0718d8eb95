#include "ssh/agent_relay.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "ssh/agent_link.hpp"

namespace remote::ssh {

struct AgentRelay::Link {
  explicit Link(ssh_channel one) : channel(one) {
    callbacks.userdata = this;
    callbacks.channel_data_function = [](ssh_session, ssh_channel, void* data, std::uint32_t size, int,
                                         void* self) {
      static_cast<Link*>(self)->talk.hear(std::string_view(static_cast<const char*>(data), size));
      return static_cast<int>(size);
    };
    callbacks.channel_eof_function = [](ssh_session, ssh_channel, void* self) {
      static_cast<Link*>(self)->talk.end();
    };
    callbacks.channel_close_function = callbacks.channel_eof_function;
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
  AgentLink talk;
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
  if (!relay.on() || relay.links_.size() >= most_agent_links) {
    return nullptr;
  }
  ssh_channel channel = ssh_channel_new(session);
  if (channel != nullptr) {
    relay.links_.push_back(std::make_unique<Link>(channel));
  }
  return channel;
}

void AgentRelay::add_to(std::vector<pollfd>& fds) const {
  for (const auto& link : links_) {
    link->talk.add_to(fds);
  }
}

bool AgentRelay::serve() {
  bool done = false;
  for (const auto& link : links_) {
    done = link->talk.serve(socket_, permissions_) || done;
    std::string& unsent = link->talk.unsent();
    if (!unsent.empty()) {
      const int count =
          ssh_channel_write(link->channel, unsent.data(), static_cast<std::uint32_t>(unsent.size()));
      if (count < 0) {
        link->talk.end();
      }
      unsent.erase(0, static_cast<std::size_t>(std::max(count, 0)));
      done = done || count > 0;
    }
    if (link->talk.ended()) {
      ssh_channel_close(link->channel);
    }
  }
  return std::erase_if(links_, [](const auto& link) { return link->talk.ended(); }) > 0 || done;
}

void AgentRelay::close() {
  socket_.clear();
  links_.clear();
}

}  // namespace remote::ssh
