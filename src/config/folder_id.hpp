#pragma once

#include <string>

#include "config/config.hpp"

namespace remote::config {

// Identifies the project's folder on this machine: 32 lowercase hexadecimal digits, generated on first use.
// The id stays the same when the folder is moved within a file system; a copy of the folder, here or on
// another machine, gets a different one and loses the original's records of sent files. Empty if it cannot be
// stored. Safe for concurrent processes.
std::string find_folder_id(const Config& config);

}  // namespace remote::config
