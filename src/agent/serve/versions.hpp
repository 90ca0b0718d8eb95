#pragma once

#include "agent/host/path.hpp"

// The copies of the agent on this machine. The installed ones are DIGEST/remote-agent in one folder.

namespace remote::agent {

// The path of this program. The file can be missing.
Path find_own_program();

// Removes this program and its folder, which was made for this process only. /proc/self/exe can still be
// executed.
void remove_own_folder();

// Removes other versions of the agent, except the newest of them, running ones, and those for another
// architecture (servers may share a home directory). Also removes leftovers of interrupted installations.
void remove_old_versions();
// For tests: uses another program and another /proc.
void remove_old_versions(const Path& program, const Path& proc);

}  // namespace remote::agent
