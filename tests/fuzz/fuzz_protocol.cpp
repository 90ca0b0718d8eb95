#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "jobs/protocol.hpp"

// What a server answers about jobs is any bytes: each parser gives an answer that keeps its promises or an
// Error that can be shown, and never anything else.

namespace {

using namespace remote;

void require(bool held, const char* promise) {
  if (!held) {
    std::fprintf(stderr, "broken promise: %s\n", promise);
    std::abort();
  }
}

bool is_id(const std::string& id) {
  return id.size() == 32 && std::ranges::all_of(id, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

template <typename Parse>
void guarded(const Parse& parse) {
  try {
    parse();
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::failure, "a server's answer is no wrong usage");
    require(!error.message().empty(), "errors say something");
    require(error.message().size() < 4096, "errors are short, however long the answer");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  guarded([&] {
    for (const auto& reply : jobs::parse_start(text)) {
      require(is_id(reply.id), "ids are ids");
      require(!reply.pid || *reply.pid > 0, "a pid names one process, never a group");
    }
  });
  guarded([&] {
    const jobs::StatusAnswer answer = jobs::parse_status(text);
    for (const auto& reply : answer.jobs) {
      require(is_id(reply.id), "ids are ids");
      require(!reply.pid || *reply.pid > 0, "a pid names one process, never a group");
      require(!reply.stop_signal || (*reply.stop_signal >= 0 && *reply.stop_signal < 256),
              "signals are signals");
    }
  });
  guarded([&] {
    for (const auto& reply : jobs::parse_kill(text)) {
      require(is_id(reply.id), "ids are ids");
      require(reply.signalled >= 0, "counts are counts");
    }
  });
  guarded([&] { jobs::parse_follow(text.substr(0, text.find('\n'))); });
  return 0;
}
