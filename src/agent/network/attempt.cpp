#include "agent/network/attempt.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "agent/network/socket_address.hpp"
#include "agent/network/visit.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

struct NamedError {
  int number;
  const char* name;
};

// Errors of connect(2) and socket(2).
constexpr std::array named_errors{NamedError{ECONNREFUSED, "ECONNREFUSED"},
                                  NamedError{ENETUNREACH, "ENETUNREACH"},
                                  NamedError{EHOSTUNREACH, "EHOSTUNREACH"},
                                  NamedError{EACCES, "EACCES"},
                                  NamedError{EINVAL, "EINVAL"},
                                  NamedError{EADDRNOTAVAIL, "EADDRNOTAVAIL"},
                                  NamedError{ENETDOWN, "ENETDOWN"},
                                  NamedError{EPERM, "EPERM"},
                                  NamedError{EMFILE, "EMFILE"},
                                  NamedError{ENFILE, "ENFILE"},
                                  NamedError{ECONNRESET, "ECONNRESET"},
                                  NamedError{EAFNOSUPPORT, "EAFNOSUPPORT"},
                                  NamedError{ENOBUFS, "ENOBUFS"},
                                  NamedError{ENOMEM, "ENOMEM"},
                                  NamedError{EHOSTDOWN, "EHOSTDOWN"},
                                  NamedError{EPROTO, "EPROTO"},
                                  NamedError{ENOPROTOOPT, "ENOPROTOOPT"},
                                  NamedError{EAGAIN, "EAGAIN"}};

std::string name_error(int error) {
  const auto* const found =
      std::ranges::find_if(named_errors, [&](const NamedError& each) { return each.number == error; });
  return found == named_errors.end() ? text::format("E{}", error) : found->name;
}

// The ICMP message that caused an error of this socket (ip(7), IP_RECVERR).
std::optional<IcmpMessage> read_icmp(const Descriptor& socket) {
  alignas(cmsghdr) std::array<char, 512> control;
  msghdr message{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (!socket || ::recvmsg(socket.get(), &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
    return std::nullopt;
  }
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
    const bool is_error = (each->cmsg_level == IPPROTO_IP && each->cmsg_type == IP_RECVERR) ||
                          (each->cmsg_level == IPPROTO_IPV6 && each->cmsg_type == IPV6_RECVERR);
    struct {
      sock_extended_err error;
      sockaddr_in6 from;  // or a sockaddr_in
    } found{};
    if (!is_error || each->cmsg_len < CMSG_LEN(sizeof found.error + sizeof(sockaddr_in))) {
      continue;
    }
    std::memcpy(&found, CMSG_DATA(each), std::min<std::size_t>(each->cmsg_len - CMSG_LEN(0), sizeof found));
    if (found.error.ee_origin == SO_EE_ORIGIN_ICMP || found.error.ee_origin == SO_EE_ORIGIN_ICMP6) {
      SocketAddress from;
      std::memcpy(&from.storage, &found.from, sizeof found.from);
      return IcmpMessage{found.error.ee_type, found.error.ee_code, from.text()};
    }
  }
  return std::nullopt;
}

}  // namespace

ReachKind judge_error(int error, const std::optional<IcmpMessage>& icmp) {
  // A router's "host unreachable", and "no route" in IPv6 (RFC 792, RFC 4443), do not come from a firewall.
  if (icmp) {
    const bool v6 = icmp->from.find(':') != std::string::npos;
    const bool is_route =
        v6 ? icmp->type == 1 && (icmp->code == 0 || icmp->code == 3) : icmp->type == 3 && icmp->code <= 1;
    if (!is_route) {
      return ReachKind::rejected;
    }
  }
  switch (error) {
    case ECONNREFUSED:
      return ReachKind::reset;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EACCES:
    case EINVAL:
    case EADDRNOTAVAIL:
    case ENETDOWN:
      return ReachKind::no_route;
    default:
      return ReachKind::failed;
  }
}

void Attempt::begin() {
  begun_ = Clock::now();
  reach_.address = address().text();
  reach_.port = port();
  Caller::begin();
}

void Attempt::end(ReachKind kind) {
  reach_.kind = kind;
  finish();
  done_(reach_);
}

void Attempt::fail(int error) {
  if (error == time_is_up || error == ETIMEDOUT) {
    end(ReachKind::dropped);
    return;
  }
  const std::optional<IcmpMessage> icmp = read_icmp(socket());
  reach_.reason = name_error(error);
  reach_.rejected_by = icmp ? icmp->from : "";
  end(judge_error(error, icmp));
}

void Attempt::greet(const std::string& text) {
  const std::vector<std::string> words = split_words(text);
  const auto by_token = [&](const wire::ListeningServer& each) { return each.token == words[1]; };
  const auto server = words.size() == 3 && words[0] == "remote1"
                          ? std::find_if(servers_.begin(), servers_.end(), by_token)
                          : servers_.end();
  if (server == servers_.end()) {
    end(text.empty() ? ReachKind::silent : ReachKind::wrong_peer);
    return;
  }
  if (server->index != expected_) {
    reach_.answered_by = static_cast<std::size_t>(server->index);
    end(ReachKind::wrong_peer);
    return;
  }
  if (words[2].find('%') == std::string::npos && IpAddress::parse(words[2])) {
    reach_.seen_as = words[2];
  }
  // Send one segment of the connection's maximum size, and receive one.
  int segment = 0;
  socklen_t size = sizeof segment;
  ::getsockopt(socket().get(), IPPROTO_TCP, TCP_MAXSEG, &segment, &size);
  const int block = std::clamp(segment, 64, max_block);
  reach_.packet =
      segment + (address().family() == AF_INET ? 40 : 60) + 12;  // with timestamps, as Linux sends them
  wanted_ = static_cast<std::size_t>(block) + 4;
  std::string order = text::format("block {}\n", block);
  order.resize(static_cast<std::size_t>(block), '.');
  send(std::move(order), talk_wait);
}

void Attempt::answer(std::string_view data) {
  received_ += data.size();
  if (received_ >= wanted_) {
    end(ReachKind::ok);
  }
}

void Attempt::lose(int /*why*/) {
  reach_.on_the_way_back = received_ > 0;
  end(ReachKind::lost_large);
}

}  // namespace remote::agent
