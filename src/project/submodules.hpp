#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace remote::project {

// Submodules with empty folders, as after `git clone` without --recurse-submodules.
std::vector<std::string> find_empty_submodules(const std::filesystem::path& project);

// The submodule with an empty folder here that contains one of these modules or files, judging by the names
// in its path; "" if none.
std::string find_empty_submodule(const std::filesystem::path& project, const std::vector<std::string>& names);

}  // namespace remote::project
