#pragma once

#include <chrono>
#include <string>

#include <remote/facts.hpp>

#include "agent/host/host.hpp"

namespace remote::agent {

// Checks whether the project's jobs folder can be used, and whether a launch marked this server as sick
// there. Any thread.
void check_jobs_folder(const Path& project, const std::string& jobs, ServerFacts& facts);

// Finds a file or folder of the project that other users can write to, which would let them change code that
// runs; "" if none is found in time. It searches all levels, those near the top first, in one file system,
// and skips the jobs folder. Files that are writable for the user's own group are not reported if the group
// has the user's name. Any thread.
std::string find_open_path(const Host& host, const Path& project, const std::string& jobs,
                           std::chrono::milliseconds limit = std::chrono::seconds(3));

// Writes, locks and creates files as a run does, in the folder or its nearest ancestor that exists. Sets the
// flaw of `facts` and removes the files. Does nothing if the user has no permission to write there. Any
// thread.
void try_folder(const Path& folder, ServerFacts& facts);

// Why not even a small file can be written to the folder: full, quota or read_only; none if it can, or if
// another error occurs.
FolderFlaw find_full_disk(const Path& folder);

// Why a run cannot write to the folder: "Disk quota exceeded"; "" if it can, or if the user has no permission
// to.
std::string find_flaw(const Path& folder);
// Why package installers cannot write there. Unlike runs, they need no locks and no pipes.
std::string find_flaw_for_packages(const Path& folder);
// "cannot write in FOLDER: Disk quota exceeded". Call it after an attempt has failed.
std::string explain_cannot_write(const Path& folder);

}  // namespace remote::agent
