#include "agent/host/path.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <memory>

#include <dirent.h>
#include <unistd.h>

namespace remote::agent {

Path Path::parent_path() const {
  const std::size_t slash = text_.rfind('/');
  return slash == std::string::npos ? "" : text_.substr(0, std::max<std::size_t>(slash, 1));
}

Path operator/(const Path& folder, const Path& name) {
  if (name.is_absolute() || folder.empty()) {
    return name;
  }
  return folder.text_ + (folder.text_.ends_with('/') ? "" : "/") + name.text_;
}

std::optional<struct stat> look_at(const Path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? std::optional(info) : std::nullopt;
}

bool exists(const Path& path) {
  return look_at(path).has_value();
}

bool is_folder(const Path& path) {
  const auto info = look_at(path);
  return info && S_ISDIR(info->st_mode);
}

bool is_file(const Path& path) {
  const auto info = look_at(path);
  return info && S_ISREG(info->st_mode);
}

bool is_program(const Path& path) {
  return is_file(path) && ::access(path.c_str(), X_OK) == 0;
}

bool is_same_file(const Path& one, const Path& other) {
  const auto first = look_at(one);
  const auto second = look_at(other);
  return first && second && first->st_dev == second->st_dev && first->st_ino == second->st_ino;
}

bool is_newer(const struct stat& one, const struct stat& other) {
  return std::pair(one.st_mtim.tv_sec, one.st_mtim.tv_nsec) >
         std::pair(other.st_mtim.tv_sec, other.st_mtim.tv_nsec);
}

std::optional<struct stat> look_at_entry(const Path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? std::optional(info) : std::nullopt;
}

bool has_entry(const Path& path) {
  return look_at_entry(path).has_value();
}

bool is_own_folder(const Path& path) {
  const auto info = look_at_entry(path);
  return info && S_ISDIR(info->st_mode);
}

std::string find_real_path(const Path& path) {
  std::array<char, PATH_MAX> buffer{};
  return ::realpath(path.c_str(), buffer.data()) == nullptr ? "" : buffer.data();
}

std::string read_link(const Path& path) {
  std::array<char, PATH_MAX> buffer{};
  const ssize_t size = ::readlink(path.c_str(), buffer.data(), buffer.size());
  return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

std::vector<std::string> list_names(const Path& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
  while (entries) {
    const dirent* entry = ::readdir(entries.get());
    if (entry == nullptr) {
      break;
    }
    const std::string_view name = static_cast<const char*>(entry->d_name);
    if (name != "." && name != "..") {
      names.emplace_back(name);
    }
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace remote::agent
