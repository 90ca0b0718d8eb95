#include "base/paths.hpp"

#include <cerrno>
#include <system_error>

#include <remote/error.hpp>
#include <unistd.h>

#include "base/files.hpp"
#include "base/strings.hpp"

namespace remote {
namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool is_link(const fs::path& path) {
  std::error_code error;
  return fs::is_symlink(path, error);
}

bool decides_what_runs(const fs::path& name) {
  const std::string lower = lower_case(name.string());  // some file systems ignore case
  return lower == ".remote" || lower == ".git";
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    paths.push_back(entry->path());
  }
  return paths;
}

bool remove_file(const fs::path& path) {
  if (::unlink(path.c_str()) == 0) {
    return true;
  }
  if (errno != ENOENT) {
    throw file_error("remove", path, errno);
  }
  return false;
}

fs::path current_folder() {
  std::error_code error;
  fs::path folder = fs::current_path(error);
  if (error) {
    throw Error("the current folder cannot be found", error.message(),
                "it was probably removed or renamed; change to one that exists: cd ~");
  }
  return folder;
}

fs::path absolute_path(const fs::path& path) {
  return path.is_absolute() ? path : current_folder() / path;
}

}  // namespace remote
