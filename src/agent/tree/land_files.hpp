#pragma once

#include <string>

#include "agent/tree/tree_list.hpp"

namespace remote::agent {

class TreeStore;

// The names in a tree that are neither sent nor moved to the project.
bool is_skipped_name(const std::string& name);

// Moves files that a program has created or changed in a tree to the project. Files in the project that are
// newer than the launch are kept, and the moved ones get another name. Returns "", or the last failure;
// throws std::runtime_error if the tree cannot be read.
std::string land_files(const TreeStore& store, const std::string& digest, const TreeList& list);

}  // namespace remote::agent
