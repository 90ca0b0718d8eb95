#include "agent/job/second_place.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/job/json_lines.hpp"
#include "base/format.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t largest_second_file = 65'536;

// Owns a file descriptor.
class SecondFd {
 public:
  explicit SecondFd(int fd) : fd_(fd) {}
  SecondFd(const SecondFd&) = delete;
  SecondFd& operator=(const SecondFd&) = delete;
  ~SecondFd() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  operator int() const { return fd_; }  // NOLINT(google-explicit-constructor)
  // Returns whether close(2) succeeded. Some file systems report a full disk only then.
  bool close() {
    const int fd = fd_;
    fd_ = -1;
    return fd >= 0 && ::close(fd) == 0;
  }

 private:
  int fd_;
};

std::array<Path, 3> list_places(const Host& host) {
  return {host.system("/var/tmp"), host.system("/tmp"), host.shared_memory};
}

std::string name_second_journal(const std::string& id) {
  return id + ".journal.jsonl";
}

Path folder_in(const Path& place) {
  return place / text::format("remote-{}", ::geteuid());
}

// Opens the folder. Returns -1 if it is missing, belongs to another user, or is accessible to other users.
int open_own(const Path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat info {};
  if (fd >= 0 && (::fstat(fd, &info) != 0 || info.st_uid != ::geteuid() || (info.st_mode & 0777U) != 0700)) {
    ::close(fd);
    return -1;
  }
  return fd;
}

std::optional<std::string> read_own_file(int folder, const std::string& name) {
  const SecondFd fd(
      ::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info {};
  if (fd < 0 || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid()) {
    return std::nullopt;
  }
  std::string text(std::min(static_cast<std::size_t>(info.st_size), largest_second_file), '\0');
  const ssize_t count = ::read(fd, text.data(), text.size());
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return count < 0 ? std::nullopt : std::optional(std::move(text));
}

bool append_to_own_file(int folder, const std::string& name, std::string_view lines) {
  SecondFd fd(::openat(folder, name.c_str(),
                       O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
  struct stat info {};
  if (fd < 0 || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid()) {
    return false;
  }
  if (append_lines(fd, lines) && fd.close()) {
    return true;
  }
  if (info.st_size == 0) {
    ::unlinkat(folder, name.c_str(), 0);
  }
  return false;
}

// Calls write(FOLDER) for each place until it succeeds.
template <typename Write>
bool write_in_first_place(const Host& host, const Write& write) {
  for (const Path& place : list_places(host)) {
    const Path path = folder_in(place);
    ::mkdir(path.c_str(), 0700);
    const SecondFd folder(open_own(path));
    if (folder < 0) {
      continue;
    }
    if (write(folder)) {
      return true;
    }
    ::rmdir(path.c_str());
  }
  return false;
}

}  // namespace

std::string read_second_journal(const Host& host, const std::string& id) {
  std::string lines;
  for (const Path& place : list_places(host)) {
    const SecondFd folder(open_own(folder_in(place)));
    if (folder >= 0) {
      if (const auto text = read_own_file(folder, name_second_journal(id))) {
        lines += *text;
        if (!lines.ends_with('\n')) {
          lines += "\n";  // it may be incomplete
        }
      }
    }
  }
  return lines;
}

bool append_to_second_journal(const Host& host, const std::string& id, std::string_view lines) {
  return write_in_first_place(
      host, [&](int folder) { return append_to_own_file(folder, name_second_journal(id), lines); });
}

void remove_second_journal(const Host& host, const std::string& id) {
  const std::string name = name_second_journal(id);
  for (const Path& place : list_places(host)) {
    const Path path = folder_in(place);
    const SecondFd folder(open_own(path));
    struct stat info {};
    if (folder >= 0 && ::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(info.st_mode) && info.st_uid == ::geteuid()) {
      ::unlinkat(folder, name.c_str(), 0);
      ::rmdir(path.c_str());  // fails if it is not empty
    }
  }
}

}  // namespace remote::agent
