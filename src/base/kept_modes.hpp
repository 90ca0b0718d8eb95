#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include <sys/types.h>

// Disks without modes, as used by Windows and cameras. chmod has no effect on them, and most do not support
// links either.

namespace remote {

// Whether the file system (f_type of statfs(2)) may ignore modes, given a file with this mode. User-space and
// Windows file systems do support modes if the mode is not 0777.
bool may_lack_modes(std::uint64_t file_system, mode_t mode);

// Returns false if changing the mode of this file or folder may have no effect.
bool keeps_modes(const std::filesystem::path& path);

// Advice to change a mode ("chmod 600 key"). Unless modes are kept, adds the alternative ("keep the key in
// ~/.ssh").
std::string advise_mode(bool keeps_modes, const std::string& change, const std::string& otherwise);

// Whether this error of creating a symbolic link means that the disk does not support links.
bool shows_no_links(const std::error_code& error);

}  // namespace remote
