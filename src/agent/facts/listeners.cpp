#include "agent/facts/listeners.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/network/socket_address.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr std::string_view listening_state = "0A";

struct ListeningSocket {
  std::string address;
  std::optional<uid_t> uid;
};

// Parses an address and a port as in /proc/net/tcp6: each group of four bytes of the address is a number in
// the machine's byte order.
std::optional<SocketAddress> parse_kernel_address(std::string_view text) {
  std::array<std::uint32_t, 4> words{};
  const std::size_t size = text.find(':');
  std::uint16_t port = 0;
  bool is_valid = (size == 8 || size == 32) && text.size() == size + 5;
  const auto parse = [&](std::size_t at, std::size_t digits, auto& number) {
    const char* const begin = text.data() + at;
    const auto [end, error] = std::from_chars(begin, begin + digits, number, 16);
    is_valid = end == begin + digits && error == std::errc();
  };
  for (std::size_t at = 0; is_valid && at < size; at += 8) {
    parse(at, 8, words.at(at / 8));
  }
  if (is_valid) {
    parse(size + 1, 4, port);
  }
  if (!is_valid) {
    return std::nullopt;
  }
  SocketAddress address = make_any_address(size == 8 ? AF_INET : AF_INET6, port);
  const std::size_t place = size == 8 ? offsetof(sockaddr_in, sin_addr) : offsetof(sockaddr_in6, sin6_addr);
  std::memcpy(reinterpret_cast<char*>(&address.storage) + place, words.data(), size / 2);
  return address;
}

std::vector<ListeningSocket> find_listening_sockets(const Host& host, int port) {
  std::vector<ListeningSocket> sockets;
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    for (const std::string& line : read_lines(host.system(path))) {
      const std::vector<std::string> words = split_words(line);
      if (words.size() < 8 || words[3] != listening_state) {
        continue;
      }
      if (const auto address = parse_kernel_address(words[1]); address && address->port() == port) {
        sockets.push_back({address->text(), parse_number<uid_t>(words[7])});
      }
    }
  }
  return sockets;
}

}  // namespace

wire::ListenersReply list_listeners(const Host& host, const wire::ListenersRequest& request) {
  wire::ListenersReply reply;
  for (ListeningSocket& socket : find_listening_sockets(host, request.port)) {
    if (std::ranges::find(reply.addresses, socket.address) == reply.addresses.end()) {
      reply.addresses.push_back(std::move(socket.address));
    }
  }
  return reply;
}

bool is_own_listener(const Host& host, int port) {
  return std::ranges::any_of(find_listening_sockets(host, port),
                             [](const ListeningSocket& socket) { return socket.uid == ::getuid(); });
}

}  // namespace remote::agent
