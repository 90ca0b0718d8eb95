#pragma once

#include <string>

#include "agent/host/path.hpp"

namespace remote::agent {

// Records that a finished job no longer needs the shared file of its launch (--init-method file). The last
// job of the launch removes the file. An earlier removal would break ranks that still read it, and torch
// would create it again. Does nothing if the job has no such file.
void leave_init_file(const Path& job_folder, const std::string& id);

// Removes the shared file at the end of the launch, even if some of its jobs have not recorded their end.
void remove_init_file(const Path& job_folder);

// Removes the shared folder of a launch, ".../.remote-init-ID", with the files of `remote` and torch in it.
// Does nothing if it does not belong to this user and this launch.
void remove_shared_folder(const std::string& path);

// The id in the file `launch` of an open shared folder; "" if it cannot be read.
std::string read_launch_id(int folder);

}  // namespace remote::agent
