#pragma once

#include <cstddef>
#include <span>
#include <string_view>

// The agents, which the build embeds (cmake/agent.cmake): one program for each architecture of servers.

namespace remote::server {

struct Agent {
  std::string_view architecture;  // as `uname -m` prints it: x86_64
  std::string_view digest;        // SHA-256 of the program, in hex: its version
  std::string_view xz;            // the program, compressed by xz
  std::size_t size;               // bytes of the program
};

std::span<const Agent> agents();

}  // namespace remote::server
