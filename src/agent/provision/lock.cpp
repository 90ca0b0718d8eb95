#include "agent/provision/lock.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace remote::agent {
namespace {

constexpr unsigned poll_interval_us = 100'000;

bool is_in(const Path& path, const Path& folder) {
  return path.string().starts_with(folder.string() + "/");
}

Path choose_lock(const PythonPlace& place) {
  const Path of_conda = place.conda().string() + ".lock";
  if (is_in(place.folder(), place.project())) {
    return place.scripts() / "setup.lock";
  }
  // Conda may not be installed yet.
  const bool is_new = place.python().manager == wire::PythonManager::conda && !exists(place.folder());
  return is_in(place.folder(), place.conda()) || is_new ? of_conda : Path(place.folder().string() + ".lock");
}

// Another user's file, or a file with content, is not ours.
bool is_own_empty_file(const Path& path) {
  const auto info = look_at_entry(path);
  return info && S_ISREG(info->st_mode) && info->st_size == 0;
}

}  // namespace

EnvironmentLock::EnvironmentLock(Steps& steps, const PythonPlace& place) : steps_(steps) {
  const Path own = place.scripts() / "setup.lock";
  const Path chosen = choose_lock(place);
  if (lock(chosen)) {
    removable_ = chosen == own ? Path() : chosen;
  } else {
    lock(own);
  }
  steps_.pass_on(file_.get());
  if (has_waited_) {
    place.refresh();
  }
}

EnvironmentLock::~EnvironmentLock() {
  steps_.pass_on(-1);
  if (!removable_.empty() && is_own_empty_file(removable_) && is_current(removable_)) {
    ::unlink(removable_.c_str());
  }
}

bool EnvironmentLock::lock(const Path& path) {
  make_open_folders(path.parent_path());
  while (true) {
    // Nothing is written, so a link to another file does no harm. Users that can read the file could lock it
    // forever.
    file_ = Descriptor(
        ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
    if (!file_) {
      return false;
    }
    if (is_own_empty_file(path)) {
      ::fchmod(file_.get(), 0600);
    }
    while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) {
        return true;  // the file system has no locks
      }
      if (!has_waited_) {
        has_waited_ = true;
        steps_.begin("waiting for another remote that prepares this environment");
      }
      steps_.check_client();
      ::usleep(poll_interval_us);
    }
    if (is_current(path)) {
      return true;
    }
  }
}

// Returns false if the previous holder has removed the file.
bool EnvironmentLock::is_current(const Path& path) const {
  struct stat held {};
  const auto info = look_at(path);
  return info && ::fstat(file_.get(), &held) == 0 && info->st_dev == held.st_dev &&
         info->st_ino == held.st_ino;
}

}  // namespace remote::agent
