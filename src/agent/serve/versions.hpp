#pragma once

#include "agent/host/path.hpp"

// The copies of the agent on this machine. Installed ones are named DIGEST/remote-agent, in one folder.

namespace remote::agent {

// The path of this program. The file may not exist any more.
Path find_own_program();

// Removes this program and its folder, which was created only for this process. /proc/self/exe can still be
// executed.
void remove_own_folder();

// Removes other versions of the agent, except for the newest of them, running ones, and those for another
// architecture (servers may share a home directory). Also removes leftovers of interrupted installations.
void remove_old_versions();
// For tests: uses another program and another /proc.
void remove_old_versions(const Path& program, const Path& proc);

}  // namespace remote::agent
