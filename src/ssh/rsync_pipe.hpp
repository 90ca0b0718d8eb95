#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/files.hpp"

// What `remote __rsync-pipe` and the process that started rsync say to each other over a socket pair. Private
// to rsync_tunnel.cpp and rsync_pipe.cpp.

namespace remote::ssh {

// What the helper hands over, once: rsync's server command, and its two pipes. The helper keeps no end of
// them, so that their end is seen by both sides.
struct PipeOffer {
  std::vector<std::string> command;
  UniqueFd from_rsync;
  UniqueFd to_rsync;
};

// nullopt when the helper went away before it said all. Blocks until then: call when the socket is readable.
std::optional<PipeOffer> receive_offer(int socket);
// False when the other side is gone.
bool send_offer(int socket, const std::vector<std::string>& command, int from_rsync, int to_rsync);

}  // namespace remote::ssh
