#include "agent/tree/files.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/descriptor.hpp"
#include "agent/job/job_files.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

constexpr unsigned long clone_request = 0x40049409;  // FICLONE in linux/fs.h

enum class Copying { done, failed, not_supported };

Copying clone_content(int from, int to) {
  if (::ioctl(to, clone_request, from) == 0) {
    return Copying::done;
  }
  return errno == ENOSPC || errno == EDQUOT ? Copying::failed : Copying::not_supported;
}

Copying copy_content(int from, int to) {
  std::array<char, 65536> buffer{};
  ssize_t count = 0;
  while ((count = ::read(from, buffer.data(), buffer.size())) != 0) {
    if (count < 0 ? errno != EINTR : !write_whole(to, {buffer.data(), static_cast<std::size_t>(count)})) {
      return Copying::failed;
    }
  }
  return Copying::done;
}

// Returns whether the mode and the times were set, and everything was written.
bool finish_copy(int from, int to) {
  struct stat info {};
  if (::fstat(from, &info) != 0 || ::fchmod(to, info.st_mode & 0777U) != 0) {
    return false;
  }
  const std::array times{info.st_atim, info.st_mtim};
  return ::futimens(to, times.data()) == 0;
}

}  // namespace

void fail_at(const Path& path) {
  throw std::runtime_error(std::string(::strerror(errno)) + ": " + path.string());
}

std::vector<std::string> list_all_names(const Path& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
  if (!entries) {
    fail_at(folder);
  }
  errno = 0;
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string_view name = static_cast<const char*>(entry->d_name);
    if (name != "." && name != "..") {
      names.emplace_back(name);
    }
    errno = 0;
  }
  if (errno != 0) {
    fail_at(folder);
  }
  return names;
}

void remove_file(const Path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR) {
    fail_at(path);
  }
}

void make_link(const std::string& target, const Path& path) {
  if (::symlink(target.c_str(), path.c_str()) != 0) {
    fail_at(path);
  }
}

CopyOutcome copy_file(const Path& source, const Path& target, bool share) {
  const Descriptor from(::open(source.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info {};
  if (!from || ::fstat(from.get(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return CopyOutcome::missing;
    }
    fail_at(source);
  }
  if (!S_ISREG(info.st_mode)) {
    return CopyOutcome::missing;
  }
  const int to = ::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (to < 0) {
    fail_at(target);
  }
  Copying copying = share ? clone_content(from.get(), to) : copy_content(from.get(), to);
  if (copying == Copying::done && !finish_copy(from.get(), to)) {
    copying = Copying::failed;
  }
  int error = errno;
  if (::close(to) != 0 && copying == Copying::done) {  // some file systems report a full disk only here
    copying = Copying::failed;
    error = errno;
  }
  if (copying == Copying::done) {
    return CopyOutcome::copied;
  }
  ::unlink(target.c_str());
  if (copying == Copying::not_supported) {
    return CopyOutcome::not_supported;
  }
  errno = error;
  fail_at(target);
}

std::string normalize(const std::string& path) {
  std::string result;
  for (const std::string& part : split(path, '/')) {
    if (part == "..") {
      result.resize(result.empty() ? 0 : result.rfind('/'));
    } else if (!part.empty() && part != ".") {
      result += "/" + part;
    }
  }
  return result.empty() ? "/" : result;
}

std::string make_relative(const std::string& target, const std::string& folder) {
  const std::vector<std::string> to = split(target, '/');
  const std::vector<std::string> from = split(folder, '/');
  std::size_t common = 0;
  while (common < to.size() && common < from.size() && to[common] == from[common]) {
    ++common;
  }
  std::string path;
  for (std::size_t i = common; i < from.size(); ++i) {
    path += path.empty() ? ".." : "/..";
  }
  for (std::size_t i = common; i < to.size(); ++i) {
    path += (path.empty() ? "" : "/") + to[i];
  }
  return path.empty() ? "." : path;
}

bool is_in_place(const Path& folder) {
  return is_own_folder(folder) && find_real_path(folder) == folder.string();
}

}  // namespace remote::agent
