#pragma once

#include <string>

#include <remote/error.hpp>

#include "base/files.hpp"
#include "ssh/libssh.hpp"
#include "ssh/target.hpp"

namespace remote::ssh {

// The server closed the connection before anyone could log in: it is busy (MaxStartups), so another attempt
// may succeed.
class Dropped : public Error {
 public:
  using Error::Error;
};

// Exchanges versions and keys over a connected socket. The session that comes back is non-blocking and not
// yet authenticated; its server key is not yet checked. Throws Dropped or Unreachable.
SessionPtr shake_hands(UniqueFd fd, const Target& target, const std::string& host_key_algorithms,
                       const Patience& patience);

}  // namespace remote::ssh
