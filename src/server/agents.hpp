#pragma once

#include <cstddef>
#include <span>
#include <string_view>

// The agents that the build embeds (cmake/agent.cmake): one program for each server architecture.

namespace remote::server {

struct Agent {
  std::string_view architecture;  // as `uname -m` prints it: x86_64
  std::string_view digest;        // SHA-256 of the program, in hex: its version
  std::string_view xz;            // the program, compressed with xz
  std::size_t size;               // size of the program in bytes
};

std::span<const Agent> agents();

}  // namespace remote::server
