#pragma once

#include <filesystem>
#include <string>

#include <sys/stat.h>

// Who else than this user may have a hand in a file.

namespace remote {

// The path with all links followed, also one that leads to what does not exist yet. Empty where they lead in
// a circle or cannot be read.
std::filesystem::path resolved(const std::filesystem::path& path);

// Whether this user or root owns a file; for root under sudo, also the user who called sudo.
bool is_own(uid_t owner);

// "it belongs to ada", "everyone may write to it": why a file may hold what somebody else put there. "" when
// only this user and root can change it. For root under sudo, the user who called sudo counts as this user;
// a group counts as others unless it is the owner's private one, of the same name and without other members.
std::string others_hand(const struct stat& info);
// The same of a path, which is followed; "" where there is none. Throws Error when it cannot be looked at.
std::string others_hand(const std::filesystem::path& path);

}  // namespace remote
