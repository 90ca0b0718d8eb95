#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "agent/host/descriptor.hpp"

// TCP connections within a test.

namespace remote::agent::test {

inline void send_at_once(const Descriptor& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

inline Descriptor connect_to_port(int port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    socket.reset();
  }
  send_at_once(socket);
  return socket;
}

// The two ends of a connection over 127.0.0.1.
inline std::pair<Descriptor, Descriptor> connect_pair() {
  const Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size);
  ::listen(listener.get(), 1);
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  Descriptor one = connect_to_port(ntohs(address.sin_port));
  Descriptor other(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  send_at_once(other);
  return {std::move(one), std::move(other)};
}

inline void send_all(const Descriptor& socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) {
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

// Reads until no more data arrives within `wait`; nullopt: the peer has closed the connection.
inline std::optional<std::string> read_some(const Descriptor& socket,
                                            std::chrono::milliseconds wait = std::chrono::milliseconds(50)) {
  std::string bytes;
  pollfd ready{socket.get(), POLLIN, 0};
  while (::poll(&ready, 1, bytes.empty() ? static_cast<int>(wait.count()) : 1) > 0) {
    std::array<char, 65536> buffer;
    const ssize_t count = ::recv(socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count <= 0) {
      return bytes.empty() ? std::nullopt : std::optional(bytes);
    }
    bytes.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return bytes;
}

// Waits until a frame, or `size` bytes, have arrived, at most 5 s.
inline std::string read_exactly(const Descriptor& socket, std::size_t size) {
  std::string bytes(size, '\0');
  std::size_t got = 0;
  pollfd ready{socket.get(), POLLIN, 0};
  while (got<size&& ::poll(&ready, 1, 5000)> 0) {
    const ssize_t count = ::recv(socket.get(), bytes.data() + got, size - got, MSG_DONTWAIT);
    if (count <= 0) {
      break;
    }
    got += static_cast<std::size_t>(count);
  }
  bytes.resize(got);
  return bytes;
}

inline std::string make_frame(std::string_view payload) {
  std::string frame;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    frame += static_cast<char>(payload.size() >> shift & 0xffU);
  }
  return frame + std::string(payload);
}

// The next frame, including its length.
inline std::string read_frame(const Descriptor& socket) {
  const std::string header = read_exactly(socket, 4);
  std::size_t size = 0;
  for (const char c : header) {
    size = size << 8U | static_cast<unsigned char>(c);
  }
  return header + read_exactly(socket, size);
}

}  // namespace remote::agent::test
