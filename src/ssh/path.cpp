#include "ssh/path.hpp"

#include <sys/socket.h>

#ifdef __linux__
#include <linux/tcp.h>
#include <netinet/in.h>
#endif

namespace remote::ssh {

const char* const path_hint =
    "where small packets pass and large ones do not, lower the MTU of the VPN or tunnel on the way, such as "
    "by `ip link set dev tun0 mtu 1200`";

PathFacts read_path([[maybe_unused]] int socket) {
  PathFacts facts;
#ifdef __linux__
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) {
    facts = {info.tcpi_unacked, info.tcpi_retransmits, info.tcpi_rcv_ooopack};
  }
#endif
  return facts;
}

std::string explain_silence(const PathFacts& before, const PathFacts& now) {
  if (now.out_of_order > before.out_of_order) {
    return "small packets come from the server and larger ones are lost on the way";
  }
  if (now.unacknowledged > 0 && now.retransmissions >= 2) {
    return "it does not acknowledge the last packets, so these or its answers are lost on the way";
  }
  return "";
}

}  // namespace remote::ssh
