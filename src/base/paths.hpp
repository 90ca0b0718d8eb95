#pragma once

#include <filesystem>
#include <vector>

namespace remote {

// The calls of std::filesystem throw what is no Error (tests/lint/filesystem.sh). These three follow
// std::filesystem's exists, is_directory and is_symlink, and return false also where this user may not look.
bool is_there(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
bool is_link(const std::filesystem::path& path);
// Whether a file or folder of this name contains what programs here believe and run: `.remote` and `.git`.
bool decides_what_runs(const std::filesystem::path& name);
// The paths of what a folder contains, in no order. None where it cannot be read.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);
// Removes a file or a link; false when there is none. Throws Error naming it.
bool remove_file(const std::filesystem::path& path);
// Throws Error when it was removed.
std::filesystem::path current_folder();
// The path from the root, links and dots as they are. Throws Error when the current folder is needed and was
// removed.
std::filesystem::path absolute_path(const std::filesystem::path& path);

}  // namespace remote
