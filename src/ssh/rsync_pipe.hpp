#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/files.hpp"

// The protocol between `remote __rsync-pipe` and the process that started rsync, over a socket pair. Private
// to rsync_tunnel.cpp and rsync_pipe.cpp.

namespace remote::ssh {

// Sent once by the helper: rsync's server command and its two pipes. The helper keeps no ends of the pipes,
// so that each side notices when the other closes them.
struct PipeOffer {
  std::vector<std::string> command;
  UniqueFd from_rsync;
  UniqueFd to_rsync;
};

// nullopt if the helper exits before it has sent everything. Blocks until then, so call it when the socket is
// readable.
std::optional<PipeOffer> receive_offer(int socket);
// Returns false if the peer has closed the connection.
bool send_offer(int socket, const std::vector<std::string>& command, int from_rsync, int to_rsync);

}  // namespace remote::ssh
