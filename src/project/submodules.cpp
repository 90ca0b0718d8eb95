#include "project/submodules.hpp"

#include <algorithm>

#include <remote/error.hpp>

#include "base/files.hpp"
#include "base/strings.hpp"

namespace remote::project {
namespace fs = std::filesystem;
namespace {

bool is_missing_or_empty(const fs::path& folder) {
  std::error_code error;
  return !fs::exists(folder, error) || (fs::is_directory(folder, error) && fs::is_empty(folder, error));
}

// The paths of the submodules, by lines "path = NAME" of .gitmodules.
std::vector<std::string> list_submodules(const fs::path& project) {
  std::vector<std::string> paths;
  try {
    for (const std::string& line : split(read_file_if_there(project / ".gitmodules").value_or(""), '\n')) {
      const std::size_t equals = line.find('=');
      if (equals != std::string::npos && trim(line.substr(0, equals)) == "path") {
        paths.emplace_back(trim(line.substr(equals + 1)));
      }
    }
  } catch (const Error&) {
    return {};
  }
  return paths;
}

}  // namespace

std::string find_empty_submodule(const fs::path& project, const std::vector<std::string>& names) {
  for (const std::string& path : list_submodules(project)) {
    const std::vector<std::string> parts = split(path, '/');
    const bool has_name = std::ranges::any_of(names, [&](const std::string& name) {
      return name.starts_with(path + "/") || std::ranges::find(parts, name) != parts.end();
    });
    if (has_name && is_missing_or_empty(project / path)) {
      return path;
    }
  }
  return "";
}

}  // namespace remote::project
