#include "agent/job/json_lines.hpp"

#include <chrono>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace remote::agent {
namespace {

// Limited, because the process that has the lock could be stopped by SIGSTOP.
constexpr std::chrono::milliseconds lock_patience{500};

// Returns whether the file is empty or ends with a newline.
bool ends_with_newline(int fd) {
  struct stat info {};
  char last = '\n';
  return ::fstat(fd, &info) == 0 &&
         (info.st_size == 0 || (::pread(fd, &last, 1, info.st_size - 1) == 1 && last == '\n'));
}

}  // namespace

bool append_lines(int fd, std::string_view lines) {
  lock_file(fd, lock_patience);  // on NFS, O_APPEND works between machines only with a lock
  // A process that died or found the disk full while it was writing has left an incomplete line.
  const std::string text = (ends_with_newline(fd) ? "" : "\n") + std::string(lines);
  const bool is_written = write_whole(fd, text);
  ::flock(fd, LOCK_UN);
  return is_written;
}

bool append_lines(const Path& journal, std::string_view lines) {
  const int fd = ::open(journal.c_str(),
                        O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
  struct stat info {};
  if (fd < 0) {
    return false;
  }
  const bool is_written = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && append_lines(fd, lines);
  return ::close(fd) == 0 && is_written;  // some file systems report a full disk only here
}

}  // namespace remote::agent
