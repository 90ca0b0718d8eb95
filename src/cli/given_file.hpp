#pragma once

#include <filesystem>
#include <string>

namespace remote::cli {

// The contents of a file given to an option. Throws Error (usage) that names the option.
std::string read_given_file(const std::string& option, const std::filesystem::path& file);

}  // namespace remote::cli
