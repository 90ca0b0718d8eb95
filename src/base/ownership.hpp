#pragma once

#include <filesystem>
#include <string>

#include <sys/stat.h>

// Checks whether other users can change a file.

namespace remote {

// The path with all links resolved, even if it does not exist yet. Empty if links are circular or cannot be
// read.
std::filesystem::path resolved(const std::filesystem::path& path);

// Whether this user or root owns a file. For root under sudo, also the user who called sudo.
bool is_own(uid_t owner);

// Why a file may contain something that another user put there: "it belongs to ada", "everyone may write to
// it"; "" if only this user and root can change it. For root under sudo, the user who called sudo counts as
// this user. A group counts as other users unless it is the owner's private one, with the same name and no
// other members.
std::string others_hand(const struct stat& info);
// Like others_hand() above, for a path, with links followed; "" if it does not exist. Throws Error if it
// cannot be checked.
std::string others_hand(const std::filesystem::path& path);

}  // namespace remote
