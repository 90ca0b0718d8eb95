#include "base/files.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_of.hpp"
#include "base/hashing.hpp"
#include "base/log.hpp"

namespace remote {
namespace fs = std::filesystem;
namespace {

// Takes ownership of two descriptors that a system call has just created. Throws Error if it failed.
std::pair<UniqueFd, UniqueFd> owned(int result, const std::array<int, 2>& fds, const char* what) {
  if (result != 0) {
    throw Error(std::string("cannot make ") + what, std::generic_category().message(errno),
                "raise `ulimit -n`");
  }
  // If the kernel cannot create them with close-on-exec, a program that another thread starts at this moment
  // inherits them.
  for (const int fd : fds) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

UniqueFd open_lock(const fs::path& path) {
  UniqueFd fd(open_regular(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  if (!fd) {
    throw file_error("open the lock file", path, errno);
  }
  return fd;
}

// A field of this user's entry in the password database; nullopt if there is no entry.
std::optional<std::string> password_entry(char* passwd::*field) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer{};
  if (::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return std::nullopt;
  }
  return found->*field;
}

// A variable's value; nullopt if it is unset or empty.
std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

// The part of an inaccessible path that denies access: the path itself, or one of its parent folders.
fs::path closed_part(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0 && ::access(path.c_str(), R_OK | W_OK) != 0) {
    return path;
  }
  fs::path folder = path.parent_path();
  while (folder.has_relative_path() && ::lstat(folder.c_str(), &info) != 0) {
    folder = folder.parent_path();  // it does not exist, or is in a folder that cannot be entered
  }
  return folder;
}

sigset_t sigpipe_alone() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

bool sigpipe_is_pending() {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

}  // namespace

Error file_error(const char* action, const fs::path& path, int error) {
  std::string hint;
  if (error == ENOSPC || error == EDQUOT) {
    hint = "free some space on that disk and run the command again";
  } else if (error == EACCES || error == EPERM || error == EROFS) {
    hint = "check the permissions of " + closed_part(path).string();
  } else if (error == ENOENT) {
    hint = "check the name and the folder";
  } else if (error == EISDIR || error == ENOTDIR) {
    hint = error == EISDIR ? "it is a folder; name a file" : "a part of the path is not a folder";
  } else if (error == ELOOP) {
    hint = "it is a link; put a file in its place";
  } else if (error == EMFILE || error == ENFILE) {
    hint = "too many files are open; raise the limit (ulimit -n)";
  } else {
    hint = "check the disk and the file's name";
  }
  return Error(std::string("cannot ") + action + " " + path.string(), std::generic_category().message(error),
               hint)
      .because(cause_of(error));
}

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    reset(other.release());
  }
  return *this;
}

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) {
    ::close(fd_);
  }
  fd_ = fd;
}

Pipe make_pipe() {
  std::array<int, 2> fds{};
#ifdef __linux__
  const int made = ::pipe2(fds.data(), O_CLOEXEC);
#else
  const int made = ::pipe(fds.data());
#endif
  auto ends = owned(made, fds, "a pipe");
  return {std::move(ends.first), std::move(ends.second)};
}

std::pair<UniqueFd, UniqueFd> socket_pair() {
  std::array<int, 2> fds{};
#ifdef SOCK_CLOEXEC
  const int made = ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data());
#else
  const int made = ::socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data());
#endif
  return owned(made, fds, "a pair of sockets");
}

SigpipeGuard::SigpipeGuard() : pending_before_(sigpipe_is_pending()) {
  const sigset_t blocked = sigpipe_alone();
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

SigpipeGuard::~SigpipeGuard() {
  const sigset_t set = sigpipe_alone();
  // A signal that was pending before is not ours. Ours must be consumed before the mask is restored, because
  // it would then kill the process.
  if (!pending_before_ && sigpipe_is_pending()) {
#ifdef __APPLE__
    int number = 0;
    ::sigwait(&set, &number);
#else
    const timespec now{};  // if the signal was sent to the whole process, another thread may have consumed it
    ::sigtimedwait(&set, nullptr, &now);
#endif
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t count = uninterrupted([&] { return ::write(fd, data.data(), data.size()); });
    if (count < 0) {
      return false;
    }
    data.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

UniqueFd open_regular(const fs::path& path, int flags, mode_t mode) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode));
  struct stat info {};
  if (fd && ::fstat(fd.get(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode) &&
      path != "/dev/null") {
    throw Error("cannot use " + path.string(), "it is not a regular file",
                "move it away, or name another one");
  }
  return fd;
}

std::optional<std::string> read_file_if_there(const fs::path& path) {
  constexpr std::size_t most_bytes = std::size_t{256} << 20U;
  const UniqueFd fd = open_regular(path, O_RDONLY);
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return std::nullopt;
    }
    throw file_error("read", path, errno);
  }
  std::string content;
  char buffer[65536];
  for (;;) {
    const ssize_t count = uninterrupted([&] { return ::read(fd.get(), buffer, sizeof buffer); });
    if (count < 0) {
      throw file_error("read", path, errno);
    }
    if (count == 0) {
      return content;
    }
    content.append(buffer, static_cast<std::size_t>(count));
    if (content.size() > most_bytes) {
      throw Error("cannot read " + path.string(), "it is larger than 256 MiB", "is it the right file?");
    }
  }
}

std::string read_file(const fs::path& path) {
  if (auto content = read_file_if_there(path)) {
    return std::move(*content);
  }
  throw file_error("read", path, ENOENT);
}

bool sync_to_disk(int fd) {
#ifdef F_FULLFSYNC
  if (::fcntl(fd, F_FULLFSYNC) == 0) {
    return true;
  }
#endif
  return ::fsync(fd) == 0;
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
  if (!write_all(fd.get(), content) || !sync_to_disk(fd.get())) {
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

FileLock::FileLock(const fs::path& path, const Cancel* cancel, std::optional<std::chrono::seconds> limit)
    : path_(path), fd_(open_lock(path)) {
  using clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds respite{2};
  const Stopwatch watch;
  std::optional<clock::time_point> cancelled;
  // Do not wait in flock(2), because a signal does not interrupt it.
  for (int pause_ms = 1;; pause_ms = std::min(20, pause_ms * 2)) {
    if (::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0) {
      if (is_current()) {
        break;
      }
      fd_ = open_lock(path);  // the previous owner has removed the file
      continue;
    }
    if (errno != EWOULDBLOCK && errno != EINTR) {
      throw file_error("lock", path, errno);
    }
    if (cancel != nullptr && cancel->cancelled()) {
      cancelled = cancelled.value_or(clock::now());
      if (clock::now() - *cancelled >= respite) {
        throw Interrupted();
      }
    }
    if (limit && watch.seconds() >= static_cast<double>(limit->count())) {
      throw Error("cannot lock " + path.string(), "another process has held it for " + watch.text(),
                  "another `remote` may hang: find it and stop it");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
  }
  if (watch.seconds() > 0.05) {
    log_info("", "waited {} for the lock {}", watch.text(), path.string());
  }
}

std::optional<FileLock> FileLock::try_lock(const fs::path& path) {
  for (;;) {
    FileLock lock(path, open_lock(path));
    if (::flock(lock.fd_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) {
        return std::nullopt;
      }
      throw file_error("lock", path, errno);
    }
    if (lock.is_current()) {
      return lock;
    }
  }
}

bool FileLock::is_current() const {
  struct stat mine {};
  struct stat named {};
  return ::fstat(fd_.get(), &mine) == 0 && ::stat(path_.c_str(), &named) == 0 &&
         mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

void FileLock::remove_file() const {
  static_cast<void>(::unlink(path_.c_str()));
}

namespace {

// The parts of temporary folders' names before six random characters: for a folder that its process has
// locked, and for one that was just created.
constexpr std::string_view held = "held.";
constexpr std::string_view made = "made.";

fs::path temporary_place() {
  std::error_code error;
  const fs::path place = fs::temp_directory_path(error);
  return error ? "/tmp" : place;
}

UniqueFd lock_folder(const fs::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 ? std::move(fd) : UniqueFd();
}

}  // namespace

void TempFolder::remove_abandoned() {
  constexpr std::size_t random = 6;
  std::error_code error;
  for (fs::directory_iterator one(temporary_place(), error), end; !error && one != end;
       one.increment(error)) {
    const std::string name = one->path().filename().string();
    struct stat info {};
    if (!name.starts_with("remote-") ||
        !std::string_view(name).substr(0, name.size() - random).ends_with(held) ||
        ::lstat(one->path().c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid()) {
      continue;
    }
    if (const UniqueFd lock = lock_folder(one->path()); lock) {
      std::error_code ignored;
      fs::remove_all(one->path(), ignored);
    }
  }
}

TempFolder::TempFolder(std::string_view prefix) {
  static std::once_flag once;
  std::call_once(once, remove_abandoned);
  const std::string start = (temporary_place() / prefix).string();
  std::string pattern = start + std::string(made) + "XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw file_error("create a temporary folder", pattern, errno);
  }
  lock_ = lock_folder(pattern);
  path_ = start + std::string(held) + pattern.substr(pattern.size() - 6);
  if (::rename(pattern.c_str(), path_.c_str()) != 0) {
    path_ = pattern;
  }
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path home_folder() {
  const auto home = environment("HOME");
  return home ? *home : password_entry(&passwd::pw_dir).value_or("/");
}

std::string local_user() {
  const auto name = password_entry(&passwd::pw_name);
  return name ? *name : environment("USER").value_or("root");
}

std::string local_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

fs::path expand_home(std::string_view path, const fs::path& home) {
  if (path == "~") {
    return home;
  }
  return path.starts_with("~/") ? home / path.substr(2) : fs::path(path);
}

}  // namespace remote
