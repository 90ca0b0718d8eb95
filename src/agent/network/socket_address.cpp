#include "agent/network/socket_address.hpp"

#include <array>
#include <cstdint>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace remote::agent {
namespace {

template <typename Address>
SocketAddress wrap_address(const Address& address) {
  SocketAddress wrapped;
  std::memcpy(&wrapped.storage, &address, sizeof address);
  wrapped.size = sizeof address;
  return wrapped;
}

}  // namespace

int SocketAddress::port() const {
  // The port is at the same offset in both families.
  sockaddr_in address{};
  std::memcpy(&address, &storage, sizeof address);
  return ntohs(address.sin_port);
}

std::string SocketAddress::text() const {
  const bool is_six = storage.ss_family == AF_INET6;
  const char* bytes = reinterpret_cast<const char*>(&storage) +
                      (is_six ? offsetof(sockaddr_in6, sin6_addr) : offsetof(sockaddr_in, sin_addr));
  const std::string address = format_address(storage.ss_family, {bytes, is_six ? 16U : 4U});
  constexpr std::string_view mapped = "::ffff:";
  return address.starts_with(mapped) ? address.substr(mapped.size()) : address;
}

SocketAddress make_socket_address(const IpAddress& address, int port) {
  if (address.family() == AF_INET6) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(static_cast<std::uint16_t>(port));
    six.sin6_scope_id = address.index();
    std::memcpy(&six.sin6_addr, address.bytes(), address.size());
    return wrap_address(six);
  }
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(static_cast<std::uint16_t>(port));
  std::memcpy(&four.sin_addr, address.bytes(), address.size());
  return wrap_address(four);
}

SocketAddress make_any_address(int family, int port) {
  return make_socket_address(IpAddress::parse(family == AF_INET6 ? "::" : "0.0.0.0").value(), port);
}

Descriptor open_tcp_socket(int family) {
  return Descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

int find_port(const Descriptor& socket) {
  SocketAddress address;
  return ::getsockname(socket.get(), address.get(), &address.size) == 0 ? address.port() : 0;
}

int find_free_port(bool ipv6) {
  const int family = ipv6 ? AF_INET6 : AF_INET;
  const SocketAddress any = make_any_address(family, 0);
  const Descriptor socket = open_tcp_socket(family);
  return socket && ::bind(socket.get(), any.get(), any.size) == 0 ? find_port(socket) : 0;
}

}  // namespace remote::agent
