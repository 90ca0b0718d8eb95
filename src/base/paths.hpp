#pragma once

#include <filesystem>
#include <vector>

namespace remote {

// Calls of std::filesystem throw exceptions that are not Error (tests/lint/filesystem.sh). These three wrap
// std::filesystem's exists, is_directory and is_symlink, and also return false if access is denied.
bool is_there(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
bool is_link(const std::filesystem::path& path);
// Whether files in a folder of this name determine what programs here trust and run: `.remote` and `.git`.
bool decides_what_runs(const std::filesystem::path& name);
// The paths of a folder's entries, unsorted. Empty if the folder cannot be read.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);
// Removes a file or link; returns false if it does not exist. Throws Error that names it.
bool remove_file(const std::filesystem::path& path);
// Throws Error if the folder was removed.
std::filesystem::path current_folder();
// Makes a path absolute, without resolving links and dots. Throws Error if the current folder is needed but
// was removed.
std::filesystem::path absolute_path(const std::filesystem::path& path);

}  // namespace remote
