#pragma once

#include <string>
#include <vector>

#include "agent/host/path.hpp"

// Operations on the files of a tree. They throw std::runtime_error: "No space left on device: /x/y".

namespace remote::agent {

[[noreturn]] void fail_at(const Path& path);  // throws with errno's message
// Like list_names(), but fails if the folder cannot be read.
std::vector<std::string> list_all_names(const Path& folder);
// Does nothing if it does not exist.
void remove_file(const Path& path);
void make_link(const std::string& target, const Path& path);

enum class CopyOutcome { copied, missing, not_supported };
// Copies a regular file with its mode and times. The target must not exist. With `share`, the files share
// their blocks, or the outcome is not_supported.
CopyOutcome copy_file(const Path& source, const Path& target, bool share);

// Resolves "." and ".." in an absolute path, without accessing the file system.
std::string normalize(const std::string& path);
// The relative path from a folder to the target. Both are absolute and normalized.
std::string make_relative(const std::string& target, const std::string& folder);
// Whether this is a folder, and neither it nor any of its ancestors is a link.
bool is_in_place(const Path& folder);

}  // namespace remote::agent
