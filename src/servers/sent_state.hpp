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

// What the project was like here when it was last sent to a server, so that a launch can tell, without asking
// the server, that its code is older than what is here.

namespace remote::servers {

// A file as it is here; another size or time means that it was changed.
struct FileStamp {
  std::string name;  // relative to the project
  std::uint64_t size = 0;
  std::int64_t time_ns = 0;  // of its last modification, since the epoch
  std::int64_t seconds() const;
  std::string line() const;  // "SIZE SECONDS NAME\n"
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// All files that go to the servers, as they are at one moment.
class ProjectState {
 public:
  // Looks at the project here. `leave`: names that are not sent whatever the patterns say (see SyncOptions).
  // Names with control characters are left out, and private keys: see keys(). Throws Error, and Interrupted.
  static ProjectState look(const config::Config& config, const std::vector<std::string>& leave,
                           const Cancel& cancel);
  // What text() gave; nullopt for anything else.
  static std::optional<ProjectState> parse(std::string_view text);

  std::string text() const;
  // The line() of each file.
  std::string listed() const;
  // nullptr: there is none of this name.
  const FileStamp* find(const std::string& name) const;
  // The same without these files.
  ProjectState without(const std::vector<std::string>& names) const;
  const std::vector<FileStamp>& files() const { return files_; }  // by name
  // Files that the patterns select and that are never sent: private keys by their content, and those that
  // configs.yaml names.
  const std::vector<std::string>& keys() const { return keys_; }
  // Files that job-pull brought and that are as it brought them: they are not sent back.
  const std::vector<std::string>& pulled() const { return pulled_; }
  // Sent files that are only pointers of git-lfs to their contents.
  const std::vector<std::string>& pointers() const { return pointers_; }
  // Adds files of the project, which job-pull has just brought, to those. Throws Error.
  static void add_pulled(const config::Config& config, const std::vector<std::string>& names);

  // Files that `then` has not, or has otherwise. Those that are gone here are not named: rsync would leave
  // them on the server.
  std::vector<std::string> changed_since(const ProjectState& then) const;
  // The same, and those that are gone here.
  std::vector<std::string> differing_from(const ProjectState& then) const;
  // Those that changed and would look unchanged to rsync, which compares sizes and whole seconds.
  std::vector<std::string> hidden_changes_since(const ProjectState& then) const;
  // Files that were modified after this time.
  std::vector<std::string> newer_than(std::int64_t time_ns) const;

 private:
  std::vector<FileStamp> files_;
  std::vector<std::string> keys_;
  std::vector<std::string> pulled_;
  std::vector<std::string> pointers_;
};

// What is known of one server, in .remote/sent: `.state.SERVER` names the user, address and folder, and the
// `.tree.DIGEST` that holds the ProjectState, which servers share. (No server's name begins with a dot.)
class SentState {
 public:
  SentState(const config::Config& config, const config::Server& server, const ssh::LoginFacts& login);

  // A transfer of this state has come to its end, and so it has for `others` (names), which share the folder:
  // what is known of these is kept up to date. Other processes may do so at the same time. Throws Error.
  void remember(const ProjectState& state, const std::vector<std::string>& others = {}) const;

  // How what was sent is told from what is here: the digest of a tree, or (where an older version sent it)
  // the time at which something was last sent. Neither: nothing was sent from here.
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
  // The files that were sent; none if they are unknown.
  ProjectState files() const;
  // Records whether all sent files are missing on the server. Throws Error.
  void set_gone(bool gone) const;

 private:
  const config::Config& config_;
  std::filesystem::path folder_;
  std::string server_;
  std::string place_;
};

// Whether set_gone(true) was the last report on a server of this name.
bool is_known_as_gone(const config::Config& config, const std::string& server);

// What was last sent to a server of this name, wherever it was then; empty where that is not known.
ProjectState last_sent(const config::Config& config, const std::string& server);

// The text() of what was sent, by its Mark::digest, which is the text's SHA-256; "": it is not known any
// more.
std::string sent_text(const config::Config& config, const std::string& digest);
// Keeps what sent_text() gives as long as this folder is there (a launch's record), if it is under 1 MiB: a
// second link, which takes no room. Where there can be none, it is not kept.
void keep_sent(const config::Config& config, const std::string& digest, const std::filesystem::path& folder);

// The files of `now` that are not what was sent: all of them if nothing was.
std::vector<std::string> changed_since(const config::Config& config, const SentState::Mark& mark,
                                       const ProjectState& now);

// Whether something changed since then in the same second and without another size, so that rsync must
// compare contents.
bool rsync_would_miss(const config::Config& config, const SentState::Mark& mark, const ProjectState& now);

// Removes the trees that no server's state names any more and nothing keeps. Throws Error.
void remove_old_trees(const config::Config& config);

}  // namespace remote::servers
