#pragma once

#include <cerrno>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace remote::agent {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using FolderEntries = std::unique_ptr<DIR, CloseFolder>;

// Opens the entries of a folder for readdir(3). `folder` is an open descriptor, which is not changed. Returns
// nullptr on failure, with the reason in errno.
inline FolderEntries open_entries(int folder) {
  const int fd = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  FolderEntries entries(fd >= 0 ? ::fdopendir(fd) : nullptr);
  if (!entries && fd >= 0) {
    const int error = errno;
    ::close(fd);
    errno = error;
  }
  return entries;
}

}  // namespace remote::agent
