#include "agent/host/remove.hpp"

#include <cerrno>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/folder_entries.hpp"
#include "base/format.hpp"

namespace remote::agent {
namespace {

// Each level keeps a descriptor open, so deeper folders are moved up first.
constexpr int most_levels = 64;

class FolderRemover {
 public:
  // `top` is the folder's descriptor.
  FolderRemover(int top, std::string path, std::string_view last)
      : top_(top), path_(std::move(path)), last_(last) {
    struct stat info {};
    if (::fstat(top, &info) == 0) {
      device_ = info.st_dev;
    }
  }

  // Returns whether the folder is empty afterwards.
  bool remove_content() {
    const bool is_empty = empty_folder(top_, path_, 0);
    return is_empty && (last_.empty() || remove_entry(top_, last_, DT_UNKNOWN, path_, 0));
  }
  // The reason of the first failure.
  const std::string& reason() const { return reason_; }

 private:
  bool empty_folder(int folder, const std::string& path, int level) {
    const FolderEntries entries = open_entries(folder);
    if (!entries) {
      return note(path, errno);
    }
    // Some file systems skip entries while others are removed, so read until no entry is left.
    bool is_empty = false;
    for (bool is_removed = true; is_removed && !is_empty;) {
      is_removed = false;
      is_empty = true;
      ::rewinddir(entries.get());
      while (const dirent* entry = ::readdir(entries.get())) {
        const std::string name = static_cast<const char*>(entry->d_name);
        if (name == "." || name == ".." || (level == 0 && name == last_)) {
          continue;
        }
        is_empty = false;
        const bool is_gone = remove_entry(folder, name, entry->d_type, path, level);
        is_removed = is_removed || is_gone;
      }
    }
    return is_empty;
  }

  // Returns whether the entry is gone, that is, removed or moved up.
  bool remove_entry(int folder, const std::string& name, unsigned char type, const std::string& path,
                    int level) {
    if (type != DT_DIR) {
      if (::unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) {
        return true;
      }
      if (errno != EISDIR && errno != EPERM) {
        return note(path + "/" + name, errno);
      }
    }
    const int error = errno;
    if (::unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) {
      return true;
    }
    if (errno == ENOTDIR) {
      return note(path + "/" + name, error);
    }
    if (level >= most_levels) {
      return move_up(folder, name, path);
    }
    return remove_folder_entry(folder, name, path + "/" + name, level);
  }

  bool remove_folder_entry(int folder, const std::string& name, const std::string& path, int level) {
    const int fd =
        ::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
      return note(path, errno);
    }
    struct stat info {};
    if (::fstat(fd, &info) != 0 || info.st_dev != device_) {
      ::close(fd);
      return note_text(text::format("cannot remove {}: another file system is mounted there", path));
    }
    const bool is_empty = empty_folder(fd, path, level + 1);
    ::close(fd);
    if (is_empty && ::unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0) {
      return true;
    }
    return note(path, errno);
  }

  bool move_up(int folder, const std::string& name, const std::string& path) {
    const std::string up = text::format(".deep.{}.{}", ::getpid(), moved_++);
    return ::renameat(folder, name.c_str(), top_, up.c_str()) == 0 || note(path + "/" + name, errno);
  }

  bool note(const std::string& path, int error) {
    return note_text(text::format("cannot remove {}: {}", path, std::strerror(error)));
  }
  bool note_text(std::string text) {
    if (reason_.empty()) {
      reason_ = std::move(text);
    }
    return false;
  }

  int top_;
  std::string path_;
  std::string last_;
  dev_t device_ = 0;
  std::string reason_{};
  int moved_ = 0;
};

}  // namespace

std::string remove_folder(const Path& parent, const std::string& name, std::string_view last) {
  const Path path = parent / name;
  const int folder = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const auto fail = [&] { return text::format("cannot remove {}: {}", path.string(), std::strerror(errno)); };
  if (folder < 0) {
    return errno == ENOENT ? "" : fail();
  }
  std::string reason;
  // Try again if a file was created in the meantime.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const int top =
        ::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (top < 0) {
      reason = errno == ENOENT ? "" : fail();
      break;
    }
    FolderRemover remover(top, path.string(), last);
    const bool is_empty = remover.remove_content();
    ::close(top);
    reason = remover.reason();
    if (is_empty) {
      reason = ::unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT ? "" : fail();
    } else if (reason.empty()) {
      reason = text::format("cannot remove {}: it is still there", path.string());
    }
    if (reason.empty()) {
      break;
    }
  }
  ::close(folder);
  return reason;
}

}  // namespace remote::agent
