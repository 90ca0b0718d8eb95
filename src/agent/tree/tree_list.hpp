#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

#include "agent/host/path.hpp"

namespace remote::agent {

struct TreeFile {
  std::string name;  // relative to the project's folder
  std::int64_t size = 0;
  std::int64_t seconds = 0;  // its modification time
};

// The files that were sent to a project's folder.
struct TreeList {
  std::vector<TreeFile> files{};
  std::set<std::string> folders{};  // all folders that contain them; "" is the project's folder
  std::set<std::string> entries{};  // the names of all files and folders, without ""
};

// Parses "SIZE NANOSECONDS NAME\0" for each file. Throws std::runtime_error for other text, and for a name
// outside the project.
TreeList parse_tree_list(std::string_view text);

// Whether this is the file that was sent, judged by size and whole seconds, like rsync. Links are not
// followed.
bool is_as_sent(const Path& path, const TreeFile& file);

// Joins a folder and a relative name; either may be "".
std::string join_name(const std::string& folder, const std::string& name);

}  // namespace remote::agent
