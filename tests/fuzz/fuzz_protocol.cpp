#include <cstddef>
#include <cstdint>
#include <string_view>

#include <remote/error.hpp>

#include "base/strings.hpp"
#include "jobs/protocol.hpp"
#include "promise.hpp"

// What a server answers about jobs is any bytes: each parser gives an answer that keeps its promises or an
// Error that can be shown, and never anything else.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace remote;
  using namespace remote::fuzz;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  guarded([&] {
    for (const auto& reply : servers::read_answer<jobs::StartAnswer>(text).jobs) {
      require(!reply.pid || *reply.pid > 0, "a pid names one process, never a group");
    }
  });
  guarded([&] {
    const jobs::StatusAnswer answer = servers::read_answer<jobs::StatusAnswer>(text);
    for (const auto& reply : answer.jobs) {
      require(!reply.pid || *reply.pid > 0, "a pid names one process, never a group");
      require(!reply.stop_signal || (*reply.stop_signal >= 0 && *reply.stop_signal < 256),
              "signals are signals");
    }
  });
  guarded([&] {
    for (const auto& reply : servers::read_answer<jobs::KillAnswer>(text).jobs) {
      require(reply.signalled >= 0, "counts are counts");
    }
  });
  guarded([&] {
    for (const auto& [rank, reply] : servers::read_answer<jobs::WorkersAnswer>(text).workers) {
      require(rank >= 0, "ranks are counted from 0");
    }
  });
  guarded([&] { jobs::parse_follow(text.substr(0, text.find('\n'))); });
  return 0;
}
