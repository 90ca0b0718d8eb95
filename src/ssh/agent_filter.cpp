#include "ssh/agent_filter.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <remote/error.hpp>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ssh/agent_socket.hpp"

namespace remote::ssh {
namespace {

// draft-miller-ssh-agent, section 5.1
constexpr char request_identities = 11;
constexpr char identities_answer = 12;

std::optional<std::string> take_string(std::string_view& data) {
  const auto size = take_agent_number(data);
  if (!size || data.size() < *size) {
    return std::nullopt;
  }
  std::string text(data.substr(0, *size));
  data.remove_prefix(*size);
  return text;
}

}  // namespace

std::string filter_identities(std::string_view answer, const std::set<std::string>& keys) {
  std::string kept;
  std::uint32_t count = 0;
  if (!answer.empty() && answer.front() == identities_answer) {
    answer.remove_prefix(1);
    const std::uint32_t listed = take_agent_number(answer).value_or(0);
    for (std::uint32_t i = 0; i < listed; ++i) {
      const auto key = take_string(answer);
      const auto comment = take_string(answer);
      if (!key || !comment) {
        break;
      }
      if (keys.contains(*key)) {
        kept += agent_number(static_cast<std::uint32_t>(key->size())) + *key;
        kept += agent_number(static_cast<std::uint32_t>(comment->size())) + *comment;
        ++count;
      }
    }
  }
  return identities_answer + agent_number(count) + kept;
}

AgentFilter::AgentFilter(std::string agent) : agent_(std::move(agent)), folder_("remote-agent-") {
  sockaddr_un address{};
  listener_ = local_socket(path(), address);
  std::array<int, 2> ends{};
  if (!listener_ ||
      ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), 4) != 0 || ::pipe(ends.data()) != 0) {
    throw Error("cannot use the SSH agent", std::strerror(errno));
  }
  stop_read_.reset(ends[0]);
  stop_write_.reset(ends[1]);
  ::fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  ::fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  thread_ = std::thread([this] { run(); });
}

AgentFilter::~AgentFilter() {
  stop_write_.reset();  // the read end becomes readable, for every poll
  thread_.join();
}

void AgentFilter::show(std::set<std::string> keys) {
  const std::lock_guard lock(mutex_);
  keys_ = std::move(keys);
}

void AgentFilter::run() {
  for (;;) {
    std::array<pollfd, 2> fds{{{listener_.get(), POLLIN, 0}, {stop_read_.get(), POLLIN, 0}}};
    if ((::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) || fds[1].revents != 0) {
      return;
    }
    if (fds[0].revents != 0) {
      const UniqueFd client(::accept(listener_.get(), nullptr, nullptr));
      if (client) {
        serve(client.get());
      }
    }
  }
}

// One client at a time: libssh opens a new connection only after it has closed, or forgotten, the last.
void AgentFilter::serve(int client) {
  const UniqueFd real = connect_agent(agent_);
  if (!real) {
    return;
  }
  while (const auto request = read_agent_message(client, stop_read_.get())) {
    if (!send_agent_message(real.get(), *request)) {
      return;
    }
    auto answer = read_agent_message(real.get(), stop_read_.get());
    if (!answer) {
      return;
    }
    const std::lock_guard lock(mutex_);
    if (request->front() == request_identities && !keys_.empty()) {
      answer = filter_identities(*answer, keys_);
    }
    if (!send_agent_message(client, *answer)) {
      return;
    }
  }
}

}  // namespace remote::ssh
