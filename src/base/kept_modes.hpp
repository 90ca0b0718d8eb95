#pragma once

#include <cstdint>
#include <filesystem>

#include <sys/types.h>

// Disks without modes, as Windows and cameras use them: chmod has no effect there.

namespace remote {

// Whether a file with this mode shows that such a file system (f_type of statfs(2)) keeps no modes. Those in
// user space and of Windows may keep them, unless everything is allowed to everyone.
bool shows_no_modes(std::uint64_t file_system, mode_t mode);

// Whether the mode of this file or folder can be changed; true if unknown.
bool keeps_modes(const std::filesystem::path& path);

}  // namespace remote
