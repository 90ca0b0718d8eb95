#include "project/submodules.hpp"

#include <algorithm>

#include <remote/error.hpp>

#include "base/beneath.hpp"
#include "base/strings.hpp"

namespace remote::project {
namespace fs = std::filesystem;
namespace {

bool is_missing_or_empty(const fs::path& folder) {
  std::error_code error;
  return !fs::exists(folder, error) || (fs::is_directory(folder, error) && fs::is_empty(folder, error));
}

bool is_beneath(const fs::path& path) {
  return path.is_relative() && std::ranges::find(path, "..") == path.end();
}

// The paths of the project's submodules, from lines "path = NAME" in .gitmodules. The file is untrusted.
std::vector<std::string> list_submodules(const fs::path& project) {
  std::vector<std::string> paths;
  try {
    for (const std::string& line : split(read_beneath(project, ".gitmodules").value_or(""), '\n')) {
      const std::size_t equals = line.find('=');
      if (equals != std::string::npos && trim(line.substr(0, equals)) == "path") {
        const std::string path(trim(line.substr(equals + 1)));
        if (is_beneath(path)) {
          paths.push_back(path);
        }
      }
    }
  } catch (const Error&) {
    return {};
  }
  return paths;
}

}  // namespace

std::vector<std::string> find_empty_submodules(const fs::path& project) {
  std::vector<std::string> empty;
  for (std::string& path : list_submodules(project)) {
    std::error_code error;
    if (fs::is_directory(project / path, error) && fs::is_empty(project / path, error) && !error) {
      empty.push_back(std::move(path));
    }
  }
  return empty;
}

std::string find_empty_submodule(const fs::path& project, const std::vector<std::string>& names) {
  if (names.empty()) {
    return "";
  }
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
