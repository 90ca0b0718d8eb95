#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace remote::project {

// The git submodule of the project whose folder is empty here and has one of these modules or files, by the
// names in its path; "" for none.
std::string find_empty_submodule(const std::filesystem::path& project, const std::vector<std::string>& names);

}  // namespace remote::project
