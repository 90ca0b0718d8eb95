#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include <sys/types.h>

// Disks without modes, as Windows and cameras use them: chmod has no effect there. Most have no links, too.

namespace remote {

// Whether the file system (f_type of statfs(2)) of a file with this mode may ignore modes. File systems in
// user space and those of Windows do not if the mode is not 0777.
bool may_lack_modes(std::uint64_t file_system, mode_t mode);

// False if changing the mode of this file or folder may have no effect.
bool keeps_modes(const std::filesystem::path& path);

// The advice to change a mode ("chmod 600 key"), and what to do instead ("keep the key in ~/.ssh") unless
// modes are kept.
std::string advise_mode(bool keeps_modes, const std::string& change, const std::string& otherwise);

// Whether a symbolic link failed with this error because the disk keeps none.
bool shows_no_links(const std::error_code& error);

}  // namespace remote
