#include <cstddef>
#include <cstdint>
#include <string_view>

#include <remote/error.hpp>

#include "promise.hpp"
#include "servers/authorize.hpp"
#include "servers/probe.hpp"

// What a server says of itself before a launch, and of a key that was put there, is any bytes.

namespace {

using namespace remote;
using namespace remote::fuzz;

bool is_port(int port) {
  return port >= 1 && port <= 65535;
}

void check_probe(std::string_view text) {
  const servers::ProbeAnswer answer = servers::read_answer<servers::ProbeAnswer>(text);
  require(answer.cpus >= 1 && answer.gpus >= 0, "counts are counts");
  require(!answer.suggested_port || is_port(*answer.suggested_port), "ports are ports");
  require(!answer.interface || answer.interface->find_first_of(" \n") == std::string::npos,
          "an interface is one word");
  require(!answer.holder || !answer.holder->pid || *answer.holder->pid > 0, "pids are pids");
  try {
    require(is_port(servers::choose_port(answer, std::nullopt)), "a port is chosen");
  } catch (const Error&) {
    require(!answer.suggested_port, "a port that is free is taken");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  guarded([&] { check_probe(text); });
  guarded([&] { servers::read_answer<servers::AuthorizeReport>(text); });
  return 0;
}
