#pragma once

#include <string>
#include <string_view>

#include "agent/host/path.hpp"

namespace remote::agent {

// Removes a folder with everything in it. Links are not followed, even if another process replaces folders
// with links at the same time. File systems mounted in it are kept. The file `last` is removed last, so that
// an interrupted removal can be repeated. Returns "" on success, or the reason if the folder still exists:
// "cannot remove /x/y: Permission denied".
std::string remove_folder(const Path& parent, const std::string& name, std::string_view last);

}  // namespace remote::agent
