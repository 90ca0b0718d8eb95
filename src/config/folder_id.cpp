#include "config/folder_id.hpp"

#include <optional>
#include <vector>

#include <sys/stat.h>

#include "base/beneath.hpp"
#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/log.hpp"
#include "base/ownership.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"

namespace remote::config {
namespace fs = std::filesystem;
namespace {

constexpr const char* id_folder = ".remote/sent";
constexpr const char* id_name = ".folder";

// The id and the folder that it was created for: machine, path and inode.
struct Record {
  std::string id;
  std::string host;
  std::string path;
  std::string inode;

  static std::optional<Record> read(const fs::path& folder) {
    const auto text = read_beneath(folder, id_name);
    const std::vector<std::string> parts = text ? split(*text, '\0') : std::vector<std::string>();
    const bool is_whole = parts.size() == 4 && parts[0].size() == 32 &&
                          parts[0].find_first_not_of("0123456789abcdef") == std::string::npos;
    return is_whole ? std::optional(Record{parts[0], parts[1], parts[2], parts[3]}) : std::nullopt;
  }
  void write(const fs::path& folder) const {
    write_file_atomic(folder / id_name, id + '\0' + host + '\0' + path + '\0' + inode);
  }
  // A machine's name may change with its network, a path when the folder is moved, and an inode on some
  // network file systems.
  bool is_of(const Record& other) const {
    return inode == other.inode || (host == other.host && path == other.path);
  }
};

// In a copy, removes the original's records of sent files, by server. Keeps all other files.
void forget_sent(const fs::path& folder) {
  for (const fs::path& entry : entries_of(folder)) {
    const std::string name = entry.filename().string();
    if (!name.starts_with('.') || name.starts_with(".state.") || name.starts_with(".gone.") ||
        name.starts_with(".unfinished.")) {
      std::error_code ignored;
      fs::remove(entry, ignored);
    }
  }
}

}  // namespace

std::string find_folder_id(const Config& config) {
  const fs::path folder = config.local(id_folder);
  struct stat info {};
  if (::stat((config.project / ".remote").c_str(), &info) != 0) {
    return "";
  }
  const Record here{random_hex(32), local_host(), resolved(config.project).string(),
                    std::to_string(info.st_ino)};
  try {
    const auto known = Record::read(folder);
    if (known && known->is_of(here)) {
      return known->id;
    }
    make_folders(folder);
    const FileLock lock(folder / ".lock");
    const auto now = Record::read(folder);  // another process may have been faster
    if (now && now->is_of(here)) {
      return now->id;
    }
    if (now) {
      forget_sent(folder);
    }
    here.write(folder);
    return here.id;
  } catch (const Error& error) {
    log_info("", "{}", error.message());
    return "";
  }
}

}  // namespace remote::config
