#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/files.hpp"
#include "base/loopback.hpp"

// TCP connections within this machine, and sockets that lose packets. Neither needs root.

namespace remote::test {

// The two ends of a connection that sends each write as one packet.
inline std::pair<UniqueFd, UniqueFd> connect_over_loopback() {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  UniqueFd one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_EQ(::connect(one.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  UniqueFd other(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  for (const UniqueFd* end : {&one, &other}) {
    const int on = 1;
    EXPECT_EQ(::setsockopt(end->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
  }
  return {std::move(one), std::move(other)};
}

// From now on the socket drops incoming packets larger than this, including the TCP header. 0: drops all.
inline void lose_packets_above(int socket, std::uint32_t bytes) {
  std::array<sock_filter, 4> code{{{BPF_LD | BPF_W | BPF_LEN, 0, 0, 0},
                                   {BPF_JMP | BPF_JGT | BPF_K, 0, 1, bytes},
                                   {BPF_RET | BPF_K, 0, 0, 0},
                                   {BPF_RET | BPF_K, 0, 0, 0x40000}}};
  const sock_fprog program{code.size(), code.data()};
  EXPECT_EQ(::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
}

// The number of packets the socket has dropped.
inline std::uint32_t count_lost_packets(int socket) {
  std::array<std::uint32_t, SK_MEMINFO_VARS> counts{};
  socklen_t size = sizeof counts;
  EXPECT_EQ(::getsockopt(socket, SOL_SOCKET, SO_MEMINFO, counts.data(), &size), 0);
  return counts[SK_MEMINFO_DROPS];
}

// The socket in this process that is connected to this port on 127.0.0.1; -1 if there is none.
inline int find_socket_to(int port) {
  constexpr int most = 1024;
  for (int fd = 0; fd < most; ++fd) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 && peer.sin_family == AF_INET &&
        peer.sin_port == loopback(port).sin_port) {
      return fd;
    }
  }
  return -1;
}

}  // namespace remote::test
