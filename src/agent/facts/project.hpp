#pragma once

#include <chrono>
#include <string>

#include <remote/facts.hpp>

#include "agent/host/host.hpp"

namespace remote::agent {

// Whether jobs can be kept in the project's folder of jobs, and whether a launch marked this server as sick
// there. Any thread.
void check_jobs_folder(const Path& project, const std::string& jobs, ServerFacts& facts);

// A file or folder of the project that other users can write to, so that they could change code that runs; ""
// if none is found in time. It searches four levels deep, in one file system, without the folder of jobs.
// Files that only the user's own group can write are not reported if the group has the user's name. Any
// thread.
std::string find_open_path(const Host& host, const Path& project, const std::string& jobs,
                           std::chrono::milliseconds limit = std::chrono::seconds(3));

// Writes, locks and makes entries as a run does, in the folder or the nearest one above it that exists, and
// sets the flaw of `facts`. Removes its files. Does nothing if the login cannot write there. Any thread.
void try_folder(const Path& folder, ServerFacts& facts);

// Why the folder takes no small file: full, quota or read_only; none if it does, or if other errors occur.
FolderFlaw find_full_disk(const Path& folder);

// Why a run cannot write in the folder: "Disk quota exceeded"; "" if it can, or if the login may not.
std::string find_flaw(const Path& folder);
// Why programs that install packages cannot write there: they need no locks and no pipes.
std::string find_flaw_for_packages(const Path& folder);
// "cannot write in FOLDER: Disk quota exceeded", after an attempt has failed.
std::string explain_cannot_write(const Path& folder);

}  // namespace remote::agent
