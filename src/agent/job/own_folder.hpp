#pragma once

#include <sys/types.h>

#include "agent/host/path.hpp"

namespace remote::agent {

// Returns whether this is a folder, and not a link, that belongs to this user and that others cannot write
// to.
bool is_closed_folder(const Path& path);
// Creates a folder and its parents, which the user can access regardless of the umask. Returns false on
// failure.
bool make_folders(const Path& path, mode_t mode);
// Creates a folder in the jobs folder, for programs or code. Ensures that both belong to this user and that
// others cannot write to them. Throws std::runtime_error.
Path make_own_folder(const Path& jobs, const char* name);

}  // namespace remote::agent
