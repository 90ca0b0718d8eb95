#pragma once

#include <string>

#include "base/files.hpp"

// Sockets in the file system. Close-on-exec; no descriptor, with errno, when it cannot be had.

namespace remote::ssh {

// Connected to who listens at `path`. `patient`: waits where many others do; else the descriptor does not
// block.
UniqueFd connect_local(const std::string& path, bool patient = true);
// Listens at `path`, where nothing is yet.
UniqueFd listen_local(const std::string& path, int backlog);

}  // namespace remote::ssh
