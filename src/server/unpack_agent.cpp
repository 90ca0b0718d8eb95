#include "server/unpack_agent.hpp"

#include <cstdint>
#include <limits>
#include <stdexcept>

#include <lzma.h>

namespace remote::server {

std::string unpack_agent(const Agent& agent) {
  std::string program(agent.size, '\0');
  std::uint64_t memory = std::numeric_limits<std::uint64_t>::max();
  std::size_t read = 0;
  std::size_t written = 0;
  const lzma_ret result = ::lzma_stream_buffer_decode(
      &memory, 0, nullptr, reinterpret_cast<const std::uint8_t*>(agent.xz.data()), &read, agent.xz.size(),
      reinterpret_cast<std::uint8_t*>(program.data()), &written, program.size());
  if (result != LZMA_OK || read != agent.xz.size() || written != program.size()) {
    throw std::runtime_error("this build of remote has a damaged agent");
  }
  return program;
}

}  // namespace remote::server
