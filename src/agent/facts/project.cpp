#include "agent/facts/project.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/facts/disks.hpp"
#include "agent/host/descriptor.hpp"
#include "agent/host/files.hpp"
#include "agent/host/folder_entries.hpp"
#include "agent/host/users.hpp"
#include "agent/job/job_files.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK;
constexpr std::array<std::string_view, 4> sick_marks{"gpu", "ecc", "xid", "disk"};

class OpenPathSearch {
 public:
  OpenPathSearch(const Host& host, Path left_out, std::chrono::steady_clock::time_point end)
      : host_(host), left_out_(std::move(left_out)), end_(end) {}

  std::string search(const Path& project) {
    // If the project's folder itself is a link, it is followed; links inside are not.
    const Descriptor top(::open(project.c_str(), folder_flags));
    struct stat info {};
    if (!top || ::fstat(top.get(), &info) != 0) {
      return "";
    }
    if (is_open(info)) {
      return project.string();
    }
    device_ = info.st_dev;
    // Folders near the top come first, because code is usually there. Deep ones are often data.
    folders_ = {""};
    for (std::size_t i = 0; i < folders_.size() && found_.empty() && !is_over(); ++i) {
      search_folder(top.get(), project, std::string(folders_[i]));
    }
    return found_;
  }

 private:
  bool is_open(const struct stat& info) {
    return (info.st_mode & S_IWOTH) != 0 ||
           ((info.st_mode & S_IWGRP) != 0 && (info.st_gid != ::getegid() || !has_own_group()));
  }

  // Computed only if needed, because the names may be in a directory service.
  bool has_own_group() {
    if (!has_own_group_) {
      has_own_group_ =
          find_account(host_, "group", ::getegid()) == find_account(host_, "passwd", ::geteuid());
    }
    return *has_own_group_;
  }

  bool is_over() const { return std::chrono::steady_clock::now() >= end_; }

  // Opens a folder of the project without following links. Its path may be longer than the system allows.
  static Descriptor open_below(int top, const std::string& name) {
    Descriptor folder(::openat(top, ".", folder_flags));
    for (const std::string& part : split(name, '/')) {
      if (folder && !part.empty()) {
        folder = Descriptor(::openat(folder.get(), part.c_str(), folder_flags | O_NOFOLLOW));
      }
    }
    return folder;
  }

  void search_folder(int top, const Path& project, const std::string& name) {
    const Descriptor folder = open_below(top, name);
    const FolderEntries entries = open_entries(folder.get());
    while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
      const std::string inner = entry->d_name;
      if (is_over()) {
        return;
      }
      if (inner != "." && inner != ".." &&
          check_entry(folder.get(), inner, project, name.empty() ? inner : name + "/" + inner)) {
        return;
      }
    }
  }

  // Returns whether the entry is open. `name`: relative to the project.
  bool check_entry(int folder, const std::string& entry, const Path& project, const std::string& name) {
    struct stat info {};
    const Path path = project / name;
    if (path == left_out_ ||
        ::fstatat(folder, entry.c_str(), &info, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0 ||
        S_ISLNK(info.st_mode)) {
      return false;
    }
    if (is_open(info)) {
      found_ = path;
      return true;
    }
    if (S_ISDIR(info.st_mode) && info.st_dev == device_) {
      folders_.push_back(name);
    }
    return false;
  }

  const Host& host_;
  const Path left_out_;
  const std::chrono::steady_clock::time_point end_;
  dev_t device_ = 0;
  std::optional<bool> has_own_group_;
  std::vector<std::string> folders_{};  // to be searched, relative to the project
  std::string found_;
};

FolderFlaw flaw_of(int error) {
  switch (error) {
    case ENOSPC:
      return FolderFlaw::full;
    case EDQUOT:
      return FolderFlaw::quota;
    case EROFS:
      return FolderFlaw::read_only;
    case EACCES:
      return FolderFlaw::no_permission;
    default:
      return FolderFlaw::other;
  }
}

// Tries operations in a folder. Each step returns 0 or the errno.
class Trial {
 public:
  explicit Trial(const Path& folder)
      : name_(folder / (".remote-try." + make_random_name())),
        link_(name_.string() + ".link"),
        pipe_(name_.string() + ".pipe"),
        file_(::open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)),
        error_(file_ ? 0 : errno) {}
  ~Trial() {
    if (file_) {
      ::unlink(name_.c_str());
    }
    ::unlink(link_.c_str());
    ::unlink(pipe_.c_str());
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  int write(std::size_t size) const {
    const std::string bytes(std::min<std::size_t>(size, 65536), 'x');
    for (std::size_t done = 0; done < size && file_;) {
      const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
      if (count < 0) {
        return errno;
      }
      done += static_cast<std::size_t>(count);
    }
    return !file_                      ? error_
           : ::fsync(file_.get()) == 0 ? 0
                                       : errno;  // a quota on a network file system may only be reported now
  }
  int set_mode() const {
    struct stat info {};
    if (::fchmod(file_.get(), 0640) != 0 || ::fstat(file_.get(), &info) != 0) {
      return errno;
    }
    return (info.st_mode & 0777) == 0640 ? 0 : EOPNOTSUPP;
  }
  int lock() const {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_len = 1;
    return ::fcntl(file_.get(), F_OFD_SETLK, &lock) == 0 ? 0 : errno;
  }
  int make_link() const { return ::symlink("nowhere", link_.c_str()) == 0 ? 0 : errno; }
  int make_pipe() const { return ::mkfifo(pipe_.c_str(), 0600) == 0 ? 0 : errno; }

 private:
  Path name_;
  Path link_;
  Path pipe_;
  Descriptor file_;
  int error_;
};

enum class Use { run, packages };

struct Tried {
  FolderFlaw flaw = FolderFlaw::none;
  std::string text;  // the error message
};

// Writes and creates files as this use does. nullopt: the user has no permission to write there.
std::optional<Tried> try_writing(const Path& folder, Use use) {
  const Path found = find_nearest_folder(folder);
  if (::access(found.c_str(), W_OK | X_OK) != 0) {
    return std::nullopt;
  }
  const Trial trial(found);
  int error = trial.write(std::size_t{1} << 20U);
  FolderFlaw flaw = error == 0 ? FolderFlaw::none : flaw_of(error);
  const auto add = [&](FolderFlaw missing, int found_error) {
    if (error == 0 && found_error != 0) {
      error = found_error;
      flaw = error == ENOSPC || error == EDQUOT ? flaw_of(error) : missing;
    }
  };
  if (error == 0) {
    add(FolderFlaw::no_modes, trial.set_mode());
    add(FolderFlaw::no_locks, use == Use::run ? trial.lock() : 0);
    add(FolderFlaw::no_links, trial.make_link());
    add(FolderFlaw::no_links, use == Use::run ? trial.make_pipe() : 0);
  }
  return Tried{flaw, error == 0 ? "" : wire::to_line(std::strerror(error), 200)};
}

}  // namespace

void check_jobs_folder(const Path& project, const std::string& jobs, ServerFacts& facts) {
  const Path folder = project / jobs;
  facts.jobs_closed = has_entry(folder) && (!is_folder(folder) || ::access(folder.c_str(), W_OK | X_OK) != 0);
  const Path mark = folder / ".sick";
  if (!is_file(mark)) {
    return;
  }
  // A line without a newline is still being written.
  const std::string text = read_file(mark, 4096).value_or("");
  const std::size_t end = text.find('\n');
  const std::vector<std::string> words =
      split_words(std::string_view(text).substr(0, end == std::string::npos ? 0 : end));
  if (!words.empty() && std::ranges::find(sick_marks, words.front()) != sick_marks.end()) {
    facts.sick = words.front();
  }
}

std::string find_open_path(const Host& host, const Path& project, const std::string& jobs,
                           std::chrono::milliseconds limit) {
  OpenPathSearch search(host, project / jobs, std::chrono::steady_clock::now() + limit);
  return wire::to_line(search.search(project), 4096);
}

void try_folder(const Path& folder, ServerFacts& facts) {
  if (const auto tried = try_writing(folder, Use::run)) {
    facts.flaw = tried->flaw;
    facts.flaw_text = tried->text;
  }
}

FolderFlaw find_full_disk(const Path& folder) {
  const FolderFlaw flaw = flaw_of(Trial(folder).write(4096));
  const bool is_full = flaw == FolderFlaw::full || flaw == FolderFlaw::quota || flaw == FolderFlaw::read_only;
  return is_full ? flaw : FolderFlaw::none;
}

std::string find_flaw(const Path& folder) {
  const auto tried = try_writing(folder, Use::run);
  return tried ? tried->text : "";
}

std::string find_flaw_for_packages(const Path& folder) {
  const auto tried = try_writing(folder, Use::packages);
  return tried ? tried->text : "";
}

std::string explain_cannot_write(const Path& folder) {
  const std::string flaw = find_flaw(folder);
  return "cannot write in " + folder.string() + ": " +
         (flaw.empty() ? "no permission, or the disk is full" : flaw);
}

}  // namespace remote::agent
