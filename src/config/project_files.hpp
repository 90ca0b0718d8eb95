#pragma once

#include <optional>
#include <string>

#include "config/config.hpp"

// Files that came with the project. They are opened beneath its folder (base/beneath.hpp): a link in a
// repository must not make this machine read other files of the user.

namespace remote::config {

// The text of a file in the project; nullopt if it does not exist. Throws Error (usage) for a file outside
// the project, and for UTF-16.
std::optional<std::string> read_project_text(const Config& config, const std::string& name);
// Whether the project has this file. Throws like read_project_text().
bool has_project_file(const Config& config, const std::string& name);
// The text of exclude_file; nullopt if it does not exist. Throws like read_project_text().
std::optional<std::string> read_exclude_file(const Config& config);

}  // namespace remote::config
