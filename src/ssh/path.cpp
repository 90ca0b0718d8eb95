#include "ssh/path.hpp"

#include <sys/socket.h>

#ifdef __linux__
#include <linux/tcp.h>
#include <netinet/in.h>
#endif

namespace remote::ssh {

const char* const path_hint =
    "check the network and the server; if small packets pass and large ones do not, lower the MTU of the VPN "
    "or tunnel on the way, such as by `ip link set dev tun0 mtu 1200`";

bool suspects_path(const Error& error) {
  return error.hint().starts_with(path_hint);
}

PathFacts read_path([[maybe_unused]] int socket) {
  PathFacts facts;
#ifdef __linux__
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) {
    facts = {true, info.tcpi_unacked, info.tcpi_retransmits, info.tcpi_rcv_ooopack};
  }
#endif
  return facts;
}

std::string explain_silence(const PathFacts& before, const PathFacts& now) {
  if (now.out_of_order > before.out_of_order) {
    return "small packets arrive from the server, and larger ones are lost";
  }
  if (now.unacknowledged > 0 && now.retransmissions >= 2) {
    return "the server does not acknowledge the last packets";
  }
  return now.known && now.unacknowledged == 0
             ? "the server acknowledges all packets, but its answer is missing"
             : "";
}

}  // namespace remote::ssh
