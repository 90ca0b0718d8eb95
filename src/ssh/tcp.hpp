#pragma once

#include <string>

#include "base/files.hpp"
#include "ssh/libssh.hpp"

namespace remote::ssh {

// A socket that child processes do not inherit. On failure, the descriptor is empty and errno is set.
UniqueFd stream_socket(int family);

// An established TCP connection.
struct TcpLink {
  UniqueFd fd;          // non-blocking, with TCP_NODELAY and keepalive
  std::string address;  // numeric address of the peer
};

// Resolves the name and connects. Tries all its addresses, IPv6 and IPv4, in the system's order. Throws
// Unreachable with the reason and a hint, and Interrupted on cancel (also while resolving).
TcpLink connect_tcp(const std::string& host, int port, const Patience& patience);

// The first numeric address of a name. Throws like connect_tcp().
std::string address_of(const std::string& host, const Patience& patience);

}  // namespace remote::ssh
