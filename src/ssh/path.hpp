#pragma once

#include <cstdint>
#include <string>

#include <remote/error.hpp>

// The kernel's data about the packets of a TCP connection, used to explain a silence.

namespace remote::ssh {

struct PathFacts {
  bool known = false;  // false if the system does not provide it (macOS), or if it is not a TCP socket
  // The number of sent packets without acknowledgment, and how often the first of them was retransmitted.
  std::uint32_t unacknowledged = 0;
  std::uint32_t retransmissions = 0;
  // The number of packets that arrived out of order since the connection began.
  std::uint32_t out_of_order = 0;
};

PathFacts read_path(int socket);

// Explains why nothing has arrived between the two samples, for "no answer: nothing came for 5 s: WHY", if
// packets are lost or may be. The server must have owed an answer since `before`. "" if the data does not
// show it.
std::string explain_silence(const PathFacts& before, const PathFacts& now);

// The hint for an error with such an explanation.
extern const char* const path_hint;
bool suspects_path(const Error& error);

}  // namespace remote::ssh
