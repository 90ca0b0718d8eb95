#pragma once

#include <cstdio>
#include <cstdlib>

#include <remote/error.hpp>

// What all fuzzers need.

namespace remote::fuzz {

// Ends the program, so that libFuzzer keeps the input, when a promise does not hold.
inline void require(bool held, const char* promise) {
  if (!held) {
    std::fprintf(stderr, "broken promise: %s\n", promise);
    std::abort();
  }
}

// Calls a parser of what a server says. It may throw an Error that can be shown, and nothing else.
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
