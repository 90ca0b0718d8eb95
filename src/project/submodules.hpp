#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace remote::project {

// The submodules whose folders are empty, as after `git clone` without --recurse-submodules.
std::vector<std::string> find_empty_submodules(const std::filesystem::path& project);

// The git submodule of the project whose folder is empty here and has one of these modules or files, by the
// names in its path; "" for none.
std::string find_empty_submodule(const std::filesystem::path& project, const std::vector<std::string>& names);

}  // namespace remote::project
