#pragma once

#include <string>
#include <vector>

#include <remote/cancel.hpp>

#include "ssh/connection.hpp"

namespace remote::servers {

enum class PathKind { missing, there, link };

// What paths on the server are (as remote_path_word() takes them), in their order. Throws Error.
std::vector<PathKind> look_at(ssh::Connection& connection, const std::vector<std::string>& paths,
                              const Cancel& cancel);

}  // namespace remote::servers
