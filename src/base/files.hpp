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

// The ends of a pipe(2), or of two connected sockets. They are close-on-exec. The functions throw Error.
struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
Pipe make_pipe();
std::pair<UniqueFd, UniqueFd> socket_pair();

// During its lifetime, a write to a pipe or socket without a reader fails with EPIPE on this thread instead
// of killing the process. This also applies to threads created meanwhile. It changes no signal handler and
// does not affect the program's other threads, so a library may use it. It must be created and destroyed by
// the same thread.
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

// "cannot ACTION PATH", with the reason for this errno, and a hint if there is one.
Error file_error(const char* action, const std::filesystem::path& path, int error);

// Makes a system call, and repeats it as long as a signal interrupts it.
template <typename Call>
auto uninterrupted(const Call& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) {
      return result;
    }
  }
}

// Whether the last call failed only because no data or space was available (errno).
inline bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK;
}

// Writes all bytes to a descriptor. Returns false on an error, with errno set.
bool write_all(int fd, std::string_view data);

// Opens a regular file or /dev/null, with close-on-exec. Never blocks and never acts on a device: a FIFO or
// other device is an Error immediately. Returns an empty descriptor if open(2) fails, with errno set.
UniqueFd open_regular(const std::filesystem::path& path, int flags, mode_t mode = 0644);

// Reads the whole file. Throws Error that names the file, also if it is larger than 256 MiB. For files of a
// project, use base/beneath.hpp.
std::string read_file(const std::filesystem::path& path);
// nullopt if the file does not exist. Throws on other errors.
std::optional<std::string> read_file_if_there(const std::filesystem::path& path);

// fsync(2), including the disk's own cache, which requires another call on macOS. Returns false on an error,
// with errno set.
bool sync_to_disk(int fd);

// Replaces or creates `path` atomically, so that readers (even after a crash) see either the old or the new
// content: writes a temporary file in the same folder, syncs it and renames it. Throws Error that names the
// file, in which case the old content is kept.
void write_file_atomic(const std::filesystem::path& path, std::string_view content, mode_t mode = 0644);

// Creates a folder and its parents. Throws Error that names it.
void make_folders(const std::filesystem::path& path, mode_t mode = 0755);

// Holds an exclusive flock(2) on a file, which is created if missing. The kernel releases it when the process
// dies, so there are no stale locks.
class FileLock {
 public:
  // Waits for the lock. Throws Error if the file cannot be opened or `limit` has passed. If it is cancelled
  // while it waits, throws Interrupted two seconds later, so that a change that has already begun can still
  // be written.
  explicit FileLock(const std::filesystem::path& path, const Cancel* cancel = nullptr,
                    std::optional<std::chrono::seconds> limit = {});
  // nullopt if another process has the lock.
  static std::optional<FileLock> try_lock(const std::filesystem::path& path);
  // Removes the file while it is locked. Processes that wait for the lock open a new file.
  void remove_file() const;

 private:
  FileLock(std::filesystem::path path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  // Whether the locked file still has this name.
  bool is_current() const;

  std::filesystem::path path_;
  UniqueFd fd_;
};

// A temporary folder, which the destructor removes with its content. When a process creates its first one,
// folders of killed processes are removed.
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
  UniqueFd lock_;  // a lock on the folder, which shows that its process is alive
};

// $HOME, or the home directory in the password database.
std::filesystem::path home_folder();
// Replaces the "~" in "~" and "~/x" with `home`.
std::filesystem::path expand_home(std::string_view path, const std::filesystem::path& home = home_folder());
// The login name of the user who runs this process.
std::string local_user();
// This machine's own host name.
std::string local_host();

}  // namespace remote
