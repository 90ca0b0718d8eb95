#pragma once

#include <string>

#include "agent/job/record.hpp"

// The trees of frozen launches, in .trees of the jobs folder (docs/protocol.md, "Trees").

namespace remote::agent {

// Records that a new job needs the tree named in its file `tree`. The record includes the name of the
// machine, because several machines may share the folder. Returns true if the job has no tree, and false on
// failure.
bool use_tree(const Host& host, const JobsFolder& folder, const std::string& id);
// Records that a job without processes no longer needs its tree, unless its supervisor has already done so.
// Returns whether land_trees() is due.
bool leave_tree(const JobsFolder& folder, const std::string& id);
// Call this after leave_tree() for a job that has just ended. If it was the last job with its tree, moves
// files written to the tree to the project, and waits until this is done.
void land_own_tree(const Host& host, const JobsFolder& folder, const std::string& id);
// Moves files that ended launches have written to their trees to the project. Runs `remote-agent land-trees
// JOBS_FOLDER` (run_land_trees) in a separate process.
void land_trees(const Host& host, const JobsFolder& folder);
int run_land_trees(const char* jobs_folder);
// Moves these files, removes trees that no job needs, and waits until this is done.
void drop_trees(const Host& host, const JobsFolder& folder);

}  // namespace remote::agent
