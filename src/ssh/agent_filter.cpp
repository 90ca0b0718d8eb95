#include "ssh/agent_filter.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.hpp"

namespace remote::ssh {
namespace {

// draft-miller-ssh-agent, section 5.1
constexpr char request_identities = 11;
constexpr char identities_answer = 12;
constexpr std::size_t longest_message = 256 * 1024;

std::string number(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    text += static_cast<char>(value >> static_cast<unsigned>(shift));
  }
  return text;
}

std::optional<std::uint32_t> take_number(std::string_view& data) {
  if (data.size() < 4) {
    return std::nullopt;
  }
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value = (value << 8U) | static_cast<unsigned char>(data[i]);
  }
  data.remove_prefix(4);
  return value;
}

std::optional<std::string> take_string(std::string_view& data) {
  const auto size = take_number(data);
  if (!size || data.size() < *size) {
    return std::nullopt;
  }
  std::string text(data.substr(0, *size));
  data.remove_prefix(*size);
  return text;
}

UniqueFd unix_socket(const std::string& path, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  UniqueFd fd(path.size() < sizeof address.sun_path ? ::socket(AF_UNIX, SOCK_STREAM, 0) : -1);
  if (fd) {
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  }
  return fd;
}

// Reads exactly `size` bytes; false at the end, on an error, or when `stop` becomes readable.
bool read_exactly(int fd, int stop, char* data, std::size_t size) {
  while (size > 0) {
    std::array<pollfd, 2> fds{{{fd, POLLIN, 0}, {stop, POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) {
      return false;
    }
    if (fds[1].revents != 0) {
      return false;
    }
    if (fds[0].revents == 0) {
      continue;
    }
    const ssize_t count = ::read(fd, data, size);
    if (count <= 0) {
      return false;
    }
    data += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

std::optional<std::string> read_message(int fd, int stop) {
  std::array<char, 4> head{};
  if (!read_exactly(fd, stop, head.data(), head.size())) {
    return std::nullopt;
  }
  std::string_view view(head.data(), head.size());
  const std::uint32_t size = take_number(view).value_or(0);
  if (size == 0 || size > longest_message) {
    return std::nullopt;
  }
  std::string body(size, '\0');
  if (!read_exactly(fd, stop, body.data(), body.size())) {
    return std::nullopt;
  }
  return body;
}

bool send_message(int fd, const std::string& body) {
  const std::string message = number(static_cast<std::uint32_t>(body.size())) + body;
  std::string_view rest = message;
  while (!rest.empty()) {
#ifdef MSG_NOSIGNAL
    const ssize_t count = ::send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
#else
    const ssize_t count = ::send(fd, rest.data(), rest.size(), 0);
#endif
    if (count <= 0) {
      return false;
    }
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

std::string filter_identities(std::string_view answer, const std::set<std::string>& keys) {
  std::string kept;
  std::uint32_t count = 0;
  if (!answer.empty() && answer.front() == identities_answer) {
    answer.remove_prefix(1);
    const std::uint32_t listed = take_number(answer).value_or(0);
    for (std::uint32_t i = 0; i < listed; ++i) {
      const auto key = take_string(answer);
      const auto comment = take_string(answer);
      if (!key || !comment) {
        break;
      }
      if (keys.contains(*key)) {
        kept += number(static_cast<std::uint32_t>(key->size())) + *key;
        kept += number(static_cast<std::uint32_t>(comment->size())) + *comment;
        ++count;
      }
    }
  }
  return identities_answer + number(count) + kept;
}

AgentFilter::AgentFilter(std::string agent) : agent_(std::move(agent)), folder_("remote-agent-") {
  sockaddr_un address{};
  listener_ = unix_socket(path(), address);
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
  sockaddr_un address{};
  const UniqueFd real = unix_socket(agent_, address);
  if (!real || ::connect(real.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return;
  }
  while (const auto request = read_message(client, stop_read_.get())) {
    if (!send_message(real.get(), *request)) {
      return;
    }
    auto answer = read_message(real.get(), stop_read_.get());
    if (!answer) {
      return;
    }
    const std::lock_guard lock(mutex_);
    if (request->front() == request_identities && !keys_.empty()) {
      answer = filter_identities(*answer, keys_);
    }
    if (!send_message(client, *answer)) {
      return;
    }
  }
}

}  // namespace remote::ssh
