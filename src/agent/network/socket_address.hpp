#pragma once

#include <string>

#include <sys/socket.h>

#include "agent/facts/kernel_route.hpp"
#include "agent/host/descriptor.hpp"

// TCP sockets and their addresses.

namespace remote::agent {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int port() const;
  // Without the zone. An IPv4-mapped IPv6 address is printed as IPv4.
  std::string text() const;
};

SocketAddress make_socket_address(const IpAddress& address, int port);
SocketAddress make_any_address(int family, int port);

// A non-blocking socket.
Descriptor open_tcp_socket(int family);
// 0 if it is not bound.
int find_port(const Descriptor& socket);
// A port on which no process listens now; 0 if there is none.
int find_free_port(bool ipv6);

}  // namespace remote::agent
