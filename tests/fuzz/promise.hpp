#pragma once

#include <cstdio>
#include <cstdlib>

#include <remote/error.hpp>

// Shared by all fuzzers.

namespace remote::fuzz {

// Aborts if a promise does not hold, so that libFuzzer keeps the input.
inline void require(bool held, const char* promise) {
  if (!held) {
    std::fprintf(stderr, "broken promise: %s\n", promise);
    std::abort();
  }
}

// Calls a parser of a server's answers. It may throw only an Error that can be displayed.
template <typename Parse>
void guarded(const Parse& parse) {
  try {
    parse();
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::failure, "a server's answer is no wrong usage");
    require(!error.message().empty() && error.message().size() < 20000, "errors say something, and briefly");
    for (const unsigned char c : error.message()) {
      require((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t', "errors move no cursor");
    }
  }
}

}  // namespace remote::fuzz
