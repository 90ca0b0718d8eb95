#pragma once

#include <string>

#include "base/files.hpp"
#include "ssh/libssh.hpp"

namespace remote::ssh {

// A socket that no program inherits; none, with errno, where there is no room for it.
UniqueFd stream_socket(int family);

// A TCP connection that stands.
struct TcpLink {
  UniqueFd fd;          // non-blocking, TCP_NODELAY, with the system's own checks for a dead link
  std::string address;  // numeric address of the peer
};

// Resolves and connects; tries every address of the name, IPv6 and IPv4, in the system's order. Throws
// Unreachable with the reason and a hint, Interrupted on cancel (also while the name is resolved).
TcpLink connect_tcp(const std::string& host, int port, const Patience& patience);

// The numeric address that a name has, the first one. Throws as connect_tcp() does.
std::string address_of(const std::string& host, const Patience& patience);

// "host:port", "[::1]:port".
std::string host_and_port(const std::string& host, int port);

}  // namespace remote::ssh
