#pragma once

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <remote/cancel.hpp>
#include <remote/error.hpp>
#include <sys/types.h>

namespace remote {

// An open file descriptor that closes itself.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// Both ends of a pipe(2), or of two sockets that are connected with each other; close-on-exec. Throw Error.
struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
Pipe make_pipe();
std::pair<UniqueFd, UniqueFd> socket_pair();

// While it lives, a write to a pipe or socket that nobody reads fails with EPIPE on this thread instead of
// ending the process; the same holds for threads that are created meanwhile. It changes no signal handler and
// does not concern the other threads of the program, so a library may use it. Made and destroyed by one
// thread.
class SigpipeGuard {
 public:
  SigpipeGuard();
  ~SigpipeGuard();
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

 private:
  sigset_t before_{};
  bool pending_before_ = false;
};

// "cannot ACTION PATH", with the reason that errno gave, and a hint where one helps.
Error file_error(const char* action, const std::filesystem::path& path, int error);

// Makes a system call, and makes it again as often as a signal interrupts it.
template <typename Call>
auto uninterrupted(const Call& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) {
      return result;
    }
  }
}

// Whether the last call failed for want of data or room alone (errno).
inline bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK;
}

// Writes all bytes to a descriptor; false on an error (errno tells).
bool write_all(int fd, std::string_view data);

// Opens a file that is a regular one or /dev/null, close-on-exec. Never waits and never acts on a device: a
// FIFO or a device is an Error at once. Empty where open(2) fails (errno tells why).
UniqueFd open_regular(const std::filesystem::path& path, int flags, mode_t mode = 0644);

// The whole file. Throws Error naming the file, also if it is larger than 256 MiB. A file of a project is
// read by base/beneath.hpp.
std::string read_file(const std::filesystem::path& path);
// nullopt when there is no such file; other errors throw.
std::optional<std::string> read_file_if_there(const std::filesystem::path& path);

// fsync(2), also past the cache of the disk itself where that takes another call (macOS). False: errno says
// why.
bool sync_to_disk(int fd);

// Replaces or creates `path` so that a reader (or a crash) sees the old content or the new, never a part:
// writes a temporary file beside it, syncs it and renames it. Throws Error naming the file; the old content
// then stays.
void write_file_atomic(const std::filesystem::path& path, std::string_view content, mode_t mode = 0644);

// Creates a folder and its parents. Throws Error naming it.
void make_folders(const std::filesystem::path& path, mode_t mode = 0755);

// An exclusive flock(2) on a file (created if missing) for as long as the object lives. The kernel drops it
// when the process dies, so a stale lock cannot exist.
class FileLock {
 public:
  // Waits until it has the lock. Throws Error when the file cannot be opened or `limit` is over, and
  // Interrupted when it has to wait and is cancelled, two seconds later: what was under way may be written
  // yet.
  explicit FileLock(const std::filesystem::path& path, const Cancel* cancel = nullptr,
                    std::optional<std::chrono::seconds> limit = {});
  // nullopt when another process has it.
  static std::optional<FileLock> try_lock(const std::filesystem::path& path);
  // Removes the file while it is locked. Whoever waits for the lock opens a new one.
  void remove_file() const;

 private:
  FileLock(std::filesystem::path path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  // Whether it is the lock of the file that has this name now.
  bool is_current() const;

  std::filesystem::path path_;
  UniqueFd fd_;
};

// A temporary folder that removes itself and what is in it. Folders of processes that were killed are removed
// when a process makes its first one.
class TempFolder {
 public:
  explicit TempFolder(std::string_view prefix = "remote-");
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

  static void remove_abandoned();

 private:
  std::filesystem::path path_;
  UniqueFd lock_;  // on the folder: its process lives
};

// $HOME, or the password database's home folder.
std::filesystem::path home_folder();
// "~" and "~/x" replaced by `home`.
std::filesystem::path expand_home(std::string_view path, const std::filesystem::path& home = home_folder());
// The login name of the user who runs this process.
std::string local_user();
// This machine's name for itself.
std::string local_host();

}  // namespace remote
