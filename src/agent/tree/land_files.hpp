#pragma once

#include <string>

#include "agent/tree/tree_list.hpp"

namespace remote::agent {

class TreeStore;

// Whether a name in a tree is neither sent nor moved to the project.
bool is_skipped_name(const std::string& name);

// Moves files that a program has created or changed in a tree to the project. If a file in the project is
// newer than the launch, it is kept, and the moved file gets another name. Returns "", or the last failure.
// Throws std::runtime_error if the tree cannot be read.
std::string land_files(const TreeStore& store, const std::string& digest, const TreeList& list);

}  // namespace remote::agent
