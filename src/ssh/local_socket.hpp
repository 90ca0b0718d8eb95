#pragma once

#include <string>

#include "base/files.hpp"

// Sockets in the file system. They are close-on-exec. On failure, the descriptor is empty and errno is set.

namespace remote::ssh {

// Connects to the process that listens at `path`. `patient`: waits if many others are waiting to connect;
// otherwise the descriptor is non-blocking.
UniqueFd connect_local(const std::string& path, bool patient = true);
// Listens at `path`, which must not exist yet.
UniqueFd listen_local(const std::string& path, int backlog);

}  // namespace remote::ssh
