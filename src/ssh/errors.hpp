#pragma once

#include <remote/error.hpp>

namespace remote::ssh {

// The server refuses a further channel on this connection (sshd's MaxSessions).
class TooManyChannels : public Error {
 public:
  TooManyChannels()
      : Error("cannot open a channel", "the server allows no further session on this connection") {}
};

// The link broke or the server cannot be reached: nothing is known of what runs there. Commands that ask for
// news take this as "unknown", never as "gone".
class Unreachable : public Error {
 public:
  using Error::Error;
};

}  // namespace remote::ssh
