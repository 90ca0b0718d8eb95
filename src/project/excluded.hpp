#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <remote/cancel.hpp>

#include "servers/project_tree.hpp"

// Reasons here for files and modules that are missing on a server. No server is asked.

namespace remote::project {

// What somebody may miss there, the largest first: no hidden files, caches, virtual environments. Throws
// Error.
std::vector<servers::SkippedPart> skipped_parts(const std::filesystem::path& project, const Cancel& cancel);

// Those of these files and folders, named as in the project, that are here and are excluded. Throws Error.
std::vector<std::string> excluded(const std::filesystem::path& project, const std::vector<std::string>& names,
                                  const Cancel& cancel);

// Whether requirements.txt names a package like this module. Throws Error.
bool requires_module(const std::filesystem::path& project, const std::string& module);

}  // namespace remote::project
