#pragma once

#include <cstdint>
#include <string>

#include <remote/error.hpp>

// What the system knows of the packets of a TCP connection, to explain why nothing comes.

namespace remote::ssh {

struct PathFacts {
  bool known = false;  // false where the system does not tell (macOS), or the socket is not TCP's
  // Packets that were sent and not acknowledged, and how often the first of them was sent again in vain.
  std::uint32_t unacknowledged = 0;
  std::uint32_t retransmissions = 0;
  // Packets that came while an earlier one was missing, since the connection began.
  std::uint32_t out_of_order = 0;
};

PathFacts read_path(int socket);

// Why nothing has come between the two moments, for "no answer: nothing came for 5 s: WHY", if packets are
// lost, or may be: the server has owed an answer since `before`. "" if nothing shows it.
std::string explain_silence(const PathFacts& before, const PathFacts& now);

// For an error with such an explanation.
extern const char* const path_hint;
// The error has that hint.
bool suspects_path(const Error& error);

}  // namespace remote::ssh
