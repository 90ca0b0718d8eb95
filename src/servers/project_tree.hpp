#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <remote/cancel.hpp>

#include "config/config.hpp"
#include "ssh/connection.hpp"

namespace remote::servers {

// The names in a folder that the project's patterns do not exclude, as rsync prints them: files, and folders
// with a '/' at the end, relative to the folder. `leave`: names in it that do not count. Throws Error.
std::vector<std::string> selected_names(const config::Config& config, const std::filesystem::path& folder,
                                        const Cancel& cancel, const std::vector<std::string>& leave = {});

// What the project's patterns exclude and somebody may expect on a server, the largest first. Throws Error.
struct SkippedPart {
  std::string name;  // in the project; a folder ends with a slash
  std::uint64_t bytes = 0;
  bool at_least = false;  // it was too much to count
};
std::vector<SkippedPart> skipped_parts(const config::Config& config, const Cancel& cancel);

// What the project's patterns do with these names in it, files or folders with a '/' at the end. One that
// cannot be tried here is in neither set.
struct Selection {
  std::set<std::string> selected;
  std::set<std::string> excluded;
};
// Throws Error.
Selection select_among(const config::Config& config, const std::set<std::string>& names,
                       const Cancel& cancel);

// What of the project goes to the servers, as rsync selects it: the names, and the contents' digests. Both
// are found out when first asked for, once for all servers; any thread.
class ProjectTree {
 public:
  explicit ProjectTree(const config::Config& config) : config_(config) {}

  // Files, and folders with a '/' at the end, relative to the project; what a symlink leads to counts as the
  // link's. Names that do not fit on one line of text are left out, and so are those in `leave`, which is the
  // same in each call. Throws Error.
  const std::vector<std::string>& names(const std::vector<std::string>& leave, const Cancel& cancel);
  // SHA-256 of a file's content; nullopt when it cannot be read any more.
  std::optional<std::string> digest(const std::string& name, const Cancel& cancel);

 private:
  const config::Config& config_;
  std::mutex names_mutex_;
  std::optional<std::vector<std::string>> names_;
  std::mutex digests_mutex_;
  std::map<std::string, std::string> digests_;
};

// The user, address and folder that what was sent to a server went to. Another machine under the same name is
// another place.
std::string sent_place(const config::Config& config, const config::Server& server,
                       const ssh::LoginFacts& login);

// What this machine has sent to a server, in .remote/sent/SERVER: the only files there that --delete may take
// away. Whatever else lies in the project's folder may be what jobs wrote.
class SentFiles {
 public:
  // At another place (see sent_place) it begins with an empty record.
  SentFiles(const config::Config& config, const config::Server& server, const ssh::LoginFacts& login);

  // Files that were sent, are not excluded and do not exist here any more, and their folders that do not
  // either (with a slash at the end). Names are relative to the project. Without a record, or with one that
  // is damaged: none. Throws Error where the exclude file cannot be read, and Interrupted.
  std::vector<std::string> gone_here(const Cancel& cancel) const;

  // Takes names out of the record, then adds others; other processes may do so at the same time. Throws
  // Error where it cannot be written.
  void update(const std::vector<std::string>& sent, const std::vector<std::string>& forgotten) const;

  // Takes names out of another server's record, which has the same folder, whoever logs in there. Throws
  // Error where it cannot be written.
  static void forget(const config::Config& config, const std::string& server,
                     const std::vector<std::string>& names);

 private:
  std::vector<std::string> read() const;

  const config::Config& config_;
  std::filesystem::path folder_;
  std::filesystem::path file_;
  std::string place_;
};

}  // namespace remote::servers
