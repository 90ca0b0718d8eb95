#pragma once

#include <filesystem>
#include <string>

namespace remote::cli {

// The content of a file that an option names. Throws Error (usage) that names the option.
std::string read_given_file(const std::string& option, const std::filesystem::path& file);

}  // namespace remote::cli
