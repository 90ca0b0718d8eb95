#pragma once

#include <cstdint>
#include <filesystem>

#include <sys/types.h>

// Disks without modes: those of Windows and cameras, on which chmod has no effect.

namespace remote {

// Whether a file with this mode shows that such a file system (f_type of statfs(2)) keeps no modes. Those in
// user space and of Windows may keep them, unless everything is allowed to everyone.
bool shows_no_modes(std::uint64_t file_system, mode_t mode);

// Whether the mode of this file or folder can be changed, as far as its file system tells; true if unknown.
bool keeps_modes(const std::filesystem::path& path);

}  // namespace remote
