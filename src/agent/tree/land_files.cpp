#include "agent/tree/land_files.hpp"

#include <cerrno>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/processes.hpp"
#include "agent/job/own_folder.hpp"
#include "agent/tree/files.hpp"
#include "agent/tree/tree_store.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

using std::chrono::nanoseconds;

nanoseconds to_nanoseconds(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

// Returns the path or, if it exists, the path with a number appended.
Path find_free(const std::string& path) {
  std::string free = path;
  for (int number = 2; has_entry(free); ++number) {
    free = text::format("{}-{}", path, number);
  }
  return free;
}

class TreeMover {
 public:
  TreeMover(const TreeStore& store, const std::string& digest, const TreeList& list)
      : store_(store), list_(list), tree_(store.path(digest)), aside_(".frozen-" + digest.substr(0, 8)) {
    const auto open = look_at_entry(store.path(digest, ".open"));
    since_ = open ? to_nanoseconds(open->st_mtim) : nanoseconds(0);
  }

  std::string move_all() {
    for (const std::string& folder : list_.folders) {
      if (is_in_place(tree_.string() + (folder.empty() ? "" : "/") + folder)) {
        move_new_files(folder);
      }
    }
    for (const TreeFile& file : list_.files) {
      try {
        move_changed_file(file);
      } catch (const std::runtime_error& error) {
        failure_ = error.what();
      }
    }
    return failure_;
  }

 private:
  // Moves files that were not sent, and sent files that a program has replaced with a folder (or the
  // reverse).
  void move_new_files(const std::string& folder) {
    for (const std::string& entry : list_all_names(tree_ / folder)) {
      const std::string name = join_name(folder, entry);
      if (is_skipped_name(entry)) {
        continue;
      }
      const Path path = tree_ / name;
      Path home = store_.project() / name;
      const bool was_sent = list_.entries.contains(name);
      if (was_sent) {
        if (is_own_folder(path) == list_.folders.contains(name)) {
          continue;
        }
        home = find_free(home.string() + aside_);
      }
      try {
        move_entry(path, home, was_sent);
      } catch (const std::runtime_error& error) {
        failure_ = error.what();
      }
    }
  }

  void move_entry(const Path& path, const Path& home, bool was_sent) {
    Path source = path;
    if (const auto info = look_at_entry(path); info && S_ISLNK(info->st_mode)) {
      source = prepare_link(path, home);
    }
    if (source.empty()) {
      return;
    }
    if (has_entry(source)) {
      move(source, home, since_);
    }
    remove_file(path);
    if (!was_sent) {
      make_link(make_relative(home, path.parent_path()), path);
    }
  }

  // Returns the file to move to the project for a link in the tree; "" if it is one of the tree's own links,
  // unchanged. Links into the project are rewritten, so that they point to the same file there.
  Path prepare_link(const Path& path, const Path& home) {
    const std::string& project = store_.project().string();
    const std::string link = read_link(path);
    std::string target = normalize(Path(path.parent_path() / link).string());
    if (target.starts_with(tree_.string() + "/")) {
      if (!link.starts_with('/')) {
        return path;
      }
      target = project + target.substr(tree_.string().size());
    } else if (!target.starts_with(project + "/") || target.starts_with(store_.jobs().string() + "/")) {
      return path;
    }
    if (target == home.string()) {
      return "";
    }
    const std::string name = target.substr(project.size() + 1);
    const std::size_t slash = name.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : name.substr(0, slash);
    if (link.starts_with("../../../") && list_.folders.contains(folder) && !has_entry(tree_ / name)) {
      return target;  // a program has renamed one of the tree's own links
    }
    remove_file(path);
    make_link(make_relative(target, home.parent_path()), path);
    return path;
  }

  void move_changed_file(const TreeFile& file) {
    const Path path = tree_ / file.name;
    const Path home = store_.project() / file.name;
    const auto info = look_at_entry(path);
    if (!info || S_ISDIR(info->st_mode) || is_as_sent(path, file) || !is_in_place(path.parent_path())) {
      return;
    }
    const auto other = look_at_entry(home);
    if (other && other->st_dev == info->st_dev && other->st_ino == info->st_ino) {
      return;
    }
    move(path, is_as_sent(home, file) ? home : find_free(home.string() + aside_), read_wall_clock());
  }

  // If the target has another type or was created or changed after `since`, it is kept, and the moved file
  // gets a name next to it.
  void move(const Path& source, Path target, nanoseconds since) {
    if (is_own_folder(source) && is_own_folder(target)) {
      move_content(source, target, since);
      return;
    }
    if (const auto info = look_at_entry(target);
        info && (is_own_folder(source) || is_folder(target) || to_nanoseconds(info->st_ctim) > since)) {
      target = find_free(target.string() + aside_);
    }
    if (!make_folders(target.parent_path(), 0700)) {
      if (errno != EEXIST && errno != ENOTDIR) {
        fail_at(target.parent_path());
      }
      // One of its parent folders has become a file.
      const std::string name = make_relative(target, store_.project());
      target = find_free((store_.project() / (replace_all(name, "/", "_") + aside_)).string());
    }
    if (::rename(source.c_str(), target.c_str()) != 0) {
      if (errno != EXDEV) {
        fail_at(source);
      }
      move_across(source, target, since);
    }
  }

  void move_content(const Path& source, const Path& target, nanoseconds since) {
    for (const std::string& name : list_all_names(source)) {
      move(source / name, target / name, since);
    }
    if (::rmdir(source.c_str()) != 0) {
      fail_at(source);
    }
  }

  // Moves to another file system.
  void move_across(const Path& source, const Path& target, nanoseconds since) {
    const auto info = look_at_entry(source);
    if (info && S_ISDIR(info->st_mode)) {
      if (::mkdir(target.c_str(), 0700) != 0) {
        fail_at(target);
      }
      move_content(source, target, since);
      ::chmod(target.c_str(), info->st_mode & 07777U);
      return;
    }
    const Path part = find_free(target.string() + aside_);
    if (info && S_ISLNK(info->st_mode)) {
      make_link(read_link(source), part);
    } else if (copy_file(source, part, false) != CopyOutcome::copied) {
      errno = EXDEV;  // a pipe or a socket
      fail_at(source);
    }
    if (::rename(part.c_str(), target.c_str()) != 0) {
      fail_at(target);
    }
    remove_file(source);
  }

  const TreeStore& store_;
  const TreeList& list_;
  Path tree_;
  std::string aside_;
  nanoseconds since_{};
  std::string failure_{};
};

}  // namespace

bool is_skipped_name(const std::string& name) {
  return name == "__pycache__" || name == ".rsync-partial";
}

std::string land_files(const TreeStore& store, const std::string& digest, const TreeList& list) {
  return TreeMover(store, digest, list).move_all();
}

}  // namespace remote::agent
