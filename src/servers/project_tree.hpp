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
// with a trailing '/', relative to the folder. `leave` lists names to ignore. Throws Error.
std::vector<std::string> selected_names(const config::Config& config, const std::filesystem::path& folder,
                                        const Cancel& cancel, const std::vector<std::string>& leave = {});

// Files that the project's patterns exclude but that the user may expect on a server. skipped_parts() returns
// the largest first. Throws Error.
struct SkippedPart {
  std::string name;  // relative to the project; a folder has a trailing slash
  std::uint64_t bytes = 0;
  bool at_least = false;  // there were too many files to count
};
std::vector<SkippedPart> skipped_parts(const config::Config& config, const Cancel& cancel);

// Applies the project's patterns to these names, files or folders with a trailing '/'. A name that cannot be
// tested here is in neither set.
struct Selection {
  std::set<std::string> selected;
  std::set<std::string> excluded;
};
// Throws Error.
Selection select_among(const config::Config& config, const std::set<std::string>& names,
                       const Cancel& cancel);

// The project's files that are sent to the servers, as rsync selects them: names, and digests of the
// contents. Both are computed on first use, once for all servers. Thread-safe.
class ProjectTree {
 public:
  explicit ProjectTree(const config::Config& config) : config_(config) {}

  // Files, and folders with a trailing '/', relative to the project. The target of a symbolic link counts as
  // the link's content. Skips names that do not fit on one line of text, and those in `leave`, which must be
  // the same in each call. Throws Error.
  const std::vector<std::string>& names(const std::vector<std::string>& leave, const Cancel& cancel);
  // SHA-256 of a file's content; nullopt if it can no longer be read.
  std::optional<std::string> digest(const std::string& name, const Cancel& cancel);

 private:
  const config::Config& config_;
  std::mutex names_mutex_;
  std::optional<std::vector<std::string>> names_;
  std::mutex digests_mutex_;
  std::map<std::string, std::string> digests_;
};

// Identifies where data was sent: user, address and folder. Another machine with the same name is a different
// place.
std::string sent_place(const config::Config& config, const config::Server& server,
                       const ssh::LoginFacts& login);

// The files that this machine has sent to a server, recorded in .remote/sent/SERVER. Only these may be
// removed by --delete, because jobs may have written any other file in the project's folder.
class SentFiles {
 public:
  // For a different place (see sent_place), it starts with an empty record.
  SentFiles(const config::Config& config, const config::Server& server, const ssh::LoginFacts& login);

  // Files that were sent, are not excluded and no longer exist here, and folders for which the same is true
  // (with a trailing slash). Names are relative to the project. Returns nothing if the record is missing or
  // damaged. Throws Error if the exclude file cannot be read, and Interrupted.
  std::vector<std::string> gone_here(const Cancel& cancel) const;

  // Removes names from the record, then adds others. Safe if other processes do the same. Throws Error if it
  // cannot be written.
  void update(const std::vector<std::string>& sent, const std::vector<std::string>& forgotten) const;

  // Removes names from the record of another server that shares the folder, regardless of the user there.
  // Throws Error if it cannot be written.
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
