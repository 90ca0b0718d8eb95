#include "agent/job/own_folder.hpp"

#include <cerrno>
#include <optional>
#include <stdexcept>

#include <sys/stat.h>
#include <unistd.h>

#include "agent/facts/project.hpp"

namespace remote::agent {
namespace {

constexpr mode_t writable_by_others = S_IWGRP | S_IWOTH;

}  // namespace

bool is_closed_folder(const Path& path) {
  const auto info = look_at_entry(path);
  return info && S_ISDIR(info->st_mode) && info->st_uid == ::geteuid() &&
         (info->st_mode & writable_by_others) == 0;
}

bool make_folders(const Path& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) != 0) {
    if (errno != ENOENT || path.string().size() <= 1) {
      return is_folder(path);
    }
    if (!make_folders(path.parent_path(), mode) || ::mkdir(path.c_str(), mode) != 0) {
      return is_folder(path);
    }
  }
  const auto info = look_at_entry(path);
  return info &&
         ((info->st_mode & S_IRWXU) == S_IRWXU || ::chmod(path.c_str(), info->st_mode | S_IRWXU) == 0);
}

Path make_own_folder(const Path& jobs, const char* name) {
  Path folder = jobs / name;
  if (!make_folders(folder, 0700)) {
    throw std::runtime_error(explain_cannot_write(jobs));
  }
  for (const Path& path : {jobs, folder}) {
    const auto info = look_at(path);
    if (!info || info->st_uid != ::geteuid()) {
      throw std::runtime_error(path.string() +
                               " belongs to another user, who could change what runs from it; remove it, or "
                               "use another folder");
    }
  }
  if (!is_own_folder(folder)) {
    throw std::runtime_error(folder.string() +
                             " is a symbolic link, and programs are run from it: remove it");
  }
  for (const Path& path : {jobs, folder}) {
    if (const auto info = look_at(path); info && (info->st_mode & writable_by_others) != 0) {
      ::chmod(path.c_str(), info->st_mode & ~writable_by_others);
    }
  }
  return folder;
}

}  // namespace remote::agent
