#include "base/beneath.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ownership.hpp"
#include "base/paths.hpp"

namespace remote {
namespace fs = std::filesystem;
namespace {

constexpr int max_links = 40;

// Walks from a folder to a file in it, one component at a time, so that the kernel follows no link.
class BeneathWalk {
 public:
  BeneathWalk(const fs::path& folder, const fs::path& name) : folder_(folder), name_(name) {}

  UniqueFd open() {
    open_folder(UniqueFd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
    add(name_, "it is not in ");
    while (!is_missing_ && !parts_.empty()) {
      const std::string part = parts_.back().string();
      parts_.pop_back();
      if (part == "..") {
        open_.pop_back();
        if (open_.empty()) {
          throw outside(links_ > 0 ? "a link leads out of " : "'..' leads out of ");
        }
      } else if (!part.empty() && part != ".") {
        enter(part);
      }
    }
    if (!is_missing_ && !file_) {
      throw fail("it is a folder", "put a file in its place");
    }
    return std::move(file_);
  }

 private:
  // Puts the components of a path in front of the remaining ones.
  void add(fs::path path, const std::string& why_outside) {
    if (path.is_absolute()) {
      path = inside(path, why_outside);
      open_.resize(std::min<std::size_t>(open_.size(), 1));
    }
    const std::vector<fs::path> parts(path.begin(), path.end());
    parts_.insert(parts_.end(), parts.rbegin(), parts.rend());
  }

  // Makes an absolute path relative to the folder.
  fs::path inside(const fs::path& path, const std::string& why_outside) const {
    for (const fs::path& top : {folder_, resolved(folder_)}) {
      const fs::path relative = path.lexically_relative(top);
      if (!relative.empty() && *relative.begin() != "..") {
        return relative;
      }
    }
    throw outside(why_outside);
  }

  void enter(const std::string& part) {
    struct stat info {};
    const int parent = open_.back().get();
    if (links_ > 0 && decides_what_runs(part)) {
      throw outside("a link leads into '" + part + "' of ");
    }
    if (::fstatat(parent, part.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      miss(errno);
    } else if (S_ISLNK(info.st_mode)) {
      follow(part);
    } else if (S_ISDIR(info.st_mode)) {
      open_folder(UniqueFd(::openat(parent, part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
    } else if (!parts_.empty()) {
      miss(ENOTDIR);
    } else if (!S_ISREG(info.st_mode)) {
      throw not_regular();
    } else {
      open_file(part);
    }
  }

  void open_folder(UniqueFd fd) {
    if (!fd) {
      miss(errno);
    } else {
      open_.push_back(std::move(fd));
    }
  }

  // Another process may have replaced it since fstatat(), so open it without waiting for a FIFO and without
  // following a link.
  void open_file(const std::string& part) {
    file_.reset(::openat(open_.back().get(), part.c_str(),
                         O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat info {};
    if (!file_) {
      miss(errno);
    } else if (::fstat(file_.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
      throw not_regular();
    }
  }

  void follow(const std::string& part) {
    std::array<char, PATH_MAX> buffer{};
    const ssize_t length = ::readlinkat(open_.back().get(), part.c_str(), buffer.data(), buffer.size());
    if (length < 0 || ++links_ > max_links) {
      return miss(length < 0 ? errno : ELOOP);
    }
    add(std::string(buffer.data(), static_cast<std::size_t>(length)),
        "a link ('" + part + "') leads out of ");
  }

  void miss(int error) {
    is_missing_ = error == ENOENT || error == ENOTDIR;
    if (!is_missing_) {
      throw file_error("read", folder_ / name_, error);
    }
  }

  Error fail(const std::string& reason, const std::string& hint) const {
    return Error::usage("cannot read " + (folder_ / name_).string(), reason, hint);
  }
  Error not_regular() const { return fail("it is not a regular file", "put a file in its place"); }
  Error outside(const std::string& why) const {
    return fail(why + folder_.string(), "put a copy of the file in its place");
  }

  const fs::path& folder_;
  const fs::path& name_;
  std::vector<fs::path> parts_;  // remaining components, in reverse order
  std::vector<UniqueFd> open_;   // open folders, starting with `folder_`
  UniqueFd file_;
  int links_ = 0;
  bool is_missing_ = false;
};

}  // namespace

UniqueFd open_beneath(const fs::path& folder, const fs::path& name) {
  return BeneathWalk(folder, name).open();
}

std::string read_rest(const UniqueFd& fd, const fs::path& file, std::uintmax_t most_bytes) {
  std::string content;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t count = uninterrupted([&] { return ::read(fd.get(), buffer.data(), buffer.size()); });
    if (count < 0) {
      throw file_error("read", file, errno);
    }
    if (count == 0) {
      return content;
    }
    content.append(buffer.data(), static_cast<std::size_t>(count));
    if (content.size() > most_bytes) {
      throw Error::usage("cannot read " + file.string(),
                         fmt::format("it is larger than {} bytes", most_bytes), "is it the right file?");
    }
  }
}

std::optional<std::string> read_beneath(const fs::path& folder, const fs::path& name,
                                        std::uintmax_t most_bytes) {
  const UniqueFd fd = open_beneath(folder, name);
  return fd ? std::optional(read_rest(fd, folder / name, most_bytes)) : std::nullopt;
}

UniqueFd open_parent_beneath(const fs::path& folder, const fs::path& name) {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  UniqueFd fd(name.is_relative() ? ::open(folder.c_str(), flags) : -1);
  for (const fs::path& part : name.parent_path()) {
    fd.reset(fd && part != ".." ? ::openat(fd.get(), part.c_str(), flags | O_NOFOLLOW) : -1);
  }
  return fd;
}

std::string remove_byte_order_mark(std::string text, const fs::path& file) {
  constexpr std::string_view utf8_mark = "\xEF\xBB\xBF";
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    throw Error::usage("cannot read " + file.string(), "it is in UTF-16", "save it as UTF-8");
  }
  if (text.starts_with(utf8_mark)) {
    text.erase(0, utf8_mark.size());
  }
  return text;
}

std::string decode_text(std::string text, const fs::path& file) {
  text = remove_byte_order_mark(std::move(text), file);
  if (text.find('\0') != std::string::npos) {
    throw Error::usage("cannot read " + file.string(), "it contains NUL bytes, as UTF-16 and binary files do",
                       "save it as UTF-8");
  }
  return text;
}

}  // namespace remote
