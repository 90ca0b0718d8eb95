#include "base/random.hpp"

#include <random>

#include <fmt/format.h>

namespace remote {

std::string random_hex(std::size_t digits) {
  // std::random_device reads the kernel's random source on Linux (libstdc++) and macOS (libc++).
  std::random_device source;
  std::string text;
  while (text.size() < digits) {
    text += fmt::format("{:08x}", source());
  }
  return text.substr(0, digits);
}

std::uint32_t random_between(std::uint32_t low, std::uint32_t high) {
  std::random_device source;
  return std::uniform_int_distribution<std::uint32_t>(low, high)(source);
}

}  // namespace remote
