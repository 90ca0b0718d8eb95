#include "base/files.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.hpp"
#include "base/random.hpp"

namespace remote {
namespace fs = std::filesystem;

Error file_error(const char* action, const fs::path& path, int error) {
  std::string hint;
  if (error == ENOSPC || error == EDQUOT) {
    hint = "free some space on that disk and run the command again";
  } else if (error == EACCES || error == EPERM || error == EROFS) {
    hint = "check the permissions of " + path.parent_path().string();
  }
  return Error(std::string("cannot ") + action + " " + path.string(), std::strerror(error), hint);
}

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    reset(other.release());
  }
  return *this;
}

int UniqueFd::release() {
  const int fd = fd_;
  fd_ = -1;
  return fd;
}

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) {
    ::close(fd_);
  }
  fd_ = fd;
}

bool write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t count = ::write(fd, data.data(), data.size());
    if (count < 0) {
      if (errno == EINTR) {
        continue;
      }
      return false;
    }
    data.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::optional<std::string> read_file_if_there(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return std::nullopt;
    }
    throw file_error("read", path, errno);
  }
  struct stat info {};
  std::string content;
  if (::fstat(fd.get(), &info) == 0 && info.st_size > 0) {
    content.reserve(static_cast<std::size_t>(info.st_size) + 1);
  }
  char buffer[16384];
  for (;;) {
    const ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
    if (count < 0) {
      if (errno == EINTR) {
        continue;
      }
      throw file_error("read", path, errno);
    }
    if (count == 0) {
      return content;
    }
    content.append(buffer, static_cast<std::size_t>(count));
  }
}

std::string read_file(const fs::path& path) {
  auto content = read_file_if_there(path);
  if (!content) {
    throw file_error("read", path, ENOENT);
  }
  return std::move(*content);
}

void write_file_atomic(const fs::path& path, std::string_view content, mode_t mode) {
  const fs::path temporary =
      path.parent_path() / ("." + path.filename().string() + "." + random_hex(8) + ".tmp");
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd) {
    throw file_error("write", path, errno);
  }
  const auto fail = [&] {
    const int error = errno;
    fd.reset();
    ::unlink(temporary.c_str());
    return file_error("write", path, error);
  };
  if (!write_all(fd.get(), content) || ::fsync(fd.get()) != 0) {
    throw fail();
  }
  if (::close(fd.release()) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    throw fail();
  }
}

void make_folders(const fs::path& path, mode_t mode) {
  if (path.empty() || ::mkdir(path.c_str(), mode) == 0) {
    return;
  }
  if (errno == ENOENT && path.has_parent_path() && path.parent_path() != path) {
    make_folders(path.parent_path(), 0755);
    if (::mkdir(path.c_str(), mode) == 0) {
      return;
    }
  }
  const int error = errno;
  struct stat info {};
  if (error == EEXIST && ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return;
  }
  throw file_error("create the folder", path, error);
}

FileLock::FileLock(const fs::path& path) {
  fd_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd_) {
    throw file_error("open the lock file", path, errno);
  }
  const Stopwatch watch;
  while (::flock(fd_.get(), LOCK_EX) != 0) {
    if (errno != EINTR) {
      throw file_error("lock", path, errno);
    }
  }
  if (watch.seconds() > 0.05) {
    log_info("", "waited {} for the lock {}", watch.text(), path.string());
  }
}

std::optional<FileLock> FileLock::try_lock(const fs::path& path) {
  FileLock lock;
  lock.fd_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock.fd_) {
    throw file_error("open the lock file", path, errno);
  }
  if (::flock(lock.fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return std::nullopt;
    }
    throw file_error("lock", path, errno);
  }
  return lock;
}

TempFolder::TempFolder(std::string_view prefix) {
  std::string pattern = (fs::temp_directory_path() / prefix).string() + "XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw file_error("create a temporary folder", pattern, errno);
  }
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path home_folder() {
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') {
    return home;
  }
  passwd entry{};
  passwd* found = nullptr;
  char buffer[4096];
  if (::getpwuid_r(::getuid(), &entry, buffer, sizeof buffer, &found) == 0 && found != nullptr) {
    return found->pw_dir;
  }
  return "/";
}

fs::path expand_home(std::string_view path) {
  if (path == "~") {
    return home_folder();
  }
  if (path.starts_with("~/")) {
    return home_folder() / path.substr(2);
  }
  return fs::path(path);
}

}  // namespace remote
