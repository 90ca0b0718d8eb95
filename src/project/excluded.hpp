#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <remote/cancel.hpp>

#include "servers/project_tree.hpp"

// Reasons on this machine why files or modules are missing on a server. Contacts no server.

namespace remote::project {

// Skipped files that the user may miss on the server, largest first; without hidden files, caches and virtual
// environments. Throws Error.
std::vector<servers::SkippedPart> skipped_parts(const std::filesystem::path& project, const Cancel& cancel);

// Those of these files and folders (named as in the project) that exist here and are excluded. Throws Error.
std::vector<std::string> excluded(const std::filesystem::path& project, const std::vector<std::string>& names,
                                  const Cancel& cancel);

// Whether requirements.txt lists a package that matches this module name. Throws Error.
bool requires_module(const std::filesystem::path& project, const std::string& module);

}  // namespace remote::project
