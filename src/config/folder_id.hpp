#pragma once

#include <string>

#include "config/config.hpp"

namespace remote::config {

// Names the project's folder on this machine: 32 lower-case hexadecimal digits, made when they are first
// needed. They stay when the folder is moved; a copy of it, here or on another machine, gets others. Empty if
// they cannot be written. Any process.
std::string find_folder_id(const Config& config);

}  // namespace remote::config
