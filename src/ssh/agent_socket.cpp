#include "ssh/agent_socket.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace remote::ssh {
namespace {

// Reads exactly `size` bytes; false at the end, on an error, when `stop` becomes readable, or past the limit.
bool read_exactly(int fd, int stop, int limit_ms, char* data, std::size_t size) {
  while (size > 0) {
    std::array<pollfd, 2> fds{{{fd, POLLIN, 0}, {stop, POLLIN, 0}}};
    const int ready = ::poll(fds.data(), fds.size(), limit_ms);
    if (ready == 0 || (ready < 0 && errno != EINTR)) {
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

}  // namespace

std::string agent_number(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    text += static_cast<char>(value >> static_cast<unsigned>(shift));
  }
  return text;
}

std::optional<std::uint32_t> take_agent_number(std::string_view& data) {
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

UniqueFd local_socket(const std::string& path, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  UniqueFd fd(path.size() < sizeof address.sun_path ? ::socket(AF_UNIX, SOCK_STREAM, 0) : -1);
  if (fd) {
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  }
  return fd;
}

UniqueFd connect_agent(const std::string& path) {
  sockaddr_un address{};
  UniqueFd fd = local_socket(path, address);
  if (fd && ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fd.reset();
  }
  return fd;
}

std::optional<std::string> read_agent_message(int fd, int stop, std::chrono::milliseconds limit) {
  const int limit_ms = limit.count() > 0 ? static_cast<int>(limit.count()) : -1;
  std::array<char, 4> head{};
  if (!read_exactly(fd, stop, limit_ms, head.data(), head.size())) {
    return std::nullopt;
  }
  std::string_view view(head.data(), head.size());
  const std::uint32_t size = take_agent_number(view).value_or(0);
  if (size == 0 || size > longest_agent_message) {
    return std::nullopt;
  }
  std::string body(size, '\0');
  if (!read_exactly(fd, stop, limit_ms, body.data(), body.size())) {
    return std::nullopt;
  }
  return body;
}

bool send_agent_message(int fd, const std::string& body) {
  const std::string message = agent_number(static_cast<std::uint32_t>(body.size())) + body;
  std::string_view rest = message;
  while (!rest.empty()) {
    const ssize_t count = ::send(fd, rest.data(), rest.size(), 0);
    if (count <= 0) {
      return false;
    }
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace remote::ssh
