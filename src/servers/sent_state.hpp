#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <remote/cancel.hpp>

#include "config/config.hpp"
#include "ssh/connection.hpp"

// The local state of the project when it was last sent to a server. With it, a launch can tell that the
// server's code is outdated, without asking the server.

namespace remote::servers {

// The local state of a file. If size or time differ, the file was changed.
struct FileStamp {
  std::string name;  // relative to the project
  std::uint64_t size = 0;
  std::int64_t time_ns = 0;  // its modification time since the epoch
  std::int64_t seconds() const;
  std::string line() const;  // "SIZE SECONDS NAME\n"
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// The state of all files that are sent to the servers, at one moment.
class ProjectState {
 public:
  // Reads the project's current state. `leave` lists names that are never sent, whatever the patterns (see
  // SyncOptions). Skips names with control characters, and private keys: see keys(). Throws Error, and
  // Interrupted.
  static ProjectState look(const config::Config& config, const std::vector<std::string>& leave,
                           const Cancel& cancel);
  // Parses the result of text(); nullopt for anything else.
  static std::optional<ProjectState> parse(std::string_view text);

  std::string text() const;
  // The concatenated line() of all files.
  std::string listed() const;
  // nullptr if there is no file with this name.
  const FileStamp* find(const std::string& name) const;
  // A copy without these files.
  ProjectState without(const std::vector<std::string>& names) const;
  const std::vector<FileStamp>& files() const { return files_; }  // sorted by name
  // Files that the patterns select but that are never sent: private keys, recognized by their content, and
  // those that configs.yaml names.
  const std::vector<std::string>& keys() const { return keys_; }
  // Files that job-pull copied here and that are unchanged, so they are not sent back.
  const std::vector<std::string>& pulled() const { return pulled_; }
  // Sent files that are only git-lfs pointers to their contents.
  const std::vector<std::string>& pointers() const { return pointers_; }
  // Records files of the project that job-pull has just copied here. Throws Error.
  static void add_pulled(const config::Config& config, const std::vector<std::string>& names);

  // Files that are missing or different in `then`. Does not include files that were removed since, which
  // rsync would leave on the server.
  std::vector<std::string> changed_since(const ProjectState& then) const;
  // Like changed_since(), but includes removed files.
  std::vector<std::string> differing_from(const ProjectState& then) const;
  // Changed files that rsync would consider unchanged, because it compares sizes and whole seconds.
  std::vector<std::string> hidden_changes_since(const ProjectState& then) const;
  // Files that were modified after this time.
  std::vector<std::string> newer_than(std::int64_t time_ns) const;

 private:
  std::vector<FileStamp> files_;
  std::vector<std::string> keys_;
  std::vector<std::string> pulled_;
  std::vector<std::string> pointers_;
};

// The known state of one server, in .remote/sent: `.state.SERVER` has the user, address and folder, and the
// name of the `.tree.DIGEST` with the ProjectState, which servers can share. (No server name begins with a
// dot.)
class SentState {
 public:
  SentState(const config::Config& config, const config::Server& server, const ssh::LoginFacts& login);

  // Records that a transfer of this state has completed, also for the servers in `others` that share the
  // folder and are already recorded. Safe if other processes do the same. Throws Error.
  void remember(const ProjectState& state, const std::vector<std::string>& others = {}) const;

  // Identifies the sent state: the digest of a tree or, if an older version sent it, the time of the last
  // transfer. If both are empty, nothing was sent from here.
  struct Mark {
    std::string digest{};
    std::int64_t time_ns = 0;
    friend bool operator==(const Mark&, const Mark&) = default;
    friend bool operator<(const Mark& a, const Mark& b) {
      return std::tie(a.digest, a.time_ns) < std::tie(b.digest, b.time_ns);
    }
    bool never() const { return digest.empty() && time_ns == 0; }
  };
  Mark mark() const;
  // The files that were sent; empty if unknown.
  ProjectState files() const;
  // Records whether all sent files are missing on the server. Throws Error.
  void set_gone(bool gone) const;

 private:
  const config::Config& config_;
  std::filesystem::path folder_;
  std::string server_;
  std::string place_;
};

// Whether set_gone(true) was the last report about a server with this name.
bool is_known_as_gone(const config::Config& config, const std::string& server);

// The state last sent to a server with this name, whatever its address was; empty if unknown.
ProjectState last_sent(const config::Config& config, const std::string& server);

// The text() of a sent state, by its Mark::digest, which is the SHA-256 of the text; "" if it no longer
// exists.
std::string sent_text(const config::Config& config, const std::string& digest);
// Keeps the result of sent_text() as long as this folder (a launch's record) exists, if it is under 1 MiB.
// Uses a hard link, which takes no disk space. If hard links are not possible, it is not kept.
void keep_sent(const config::Config& config, const std::string& digest, const std::filesystem::path& folder);

// The files of `now` that differ from the sent state; all of them if nothing was sent.
std::vector<std::string> changed_since(const config::Config& config, const SentState::Mark& mark,
                                       const ProjectState& now);

// Whether a file has changed since then in the same second and with the same size, so that rsync must compare
// contents.
bool rsync_would_miss(const config::Config& config, const SentState::Mark& mark, const ProjectState& now);

// Removes trees that no server's state refers to and that are not kept. Throws Error.
void remove_old_trees(const config::Config& config);

}  // namespace remote::servers
