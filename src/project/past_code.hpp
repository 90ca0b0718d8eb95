#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/history.hpp>

#include "base/files.hpp"
#include "config/config.hpp"
#include "project/git.hpp"
#include "servers/sent_state.hpp"

namespace remote::project {

// The digest of the files that all servers had (servers::SentState); "": unknown, or not the same.
std::string sent_digest(const PastLaunch& record);
// The digest of the tree of a frozen launch.
std::string tree_digest(const PastLaunch& record);
// The files with the digest of sent_digest(); nullopt: their list was not kept.
std::optional<servers::ProjectState> files_sent(const config::Config& config, const PastLaunch& record);

// The changes of a recorded launch since its commit; "" if it has none, or if the file is gone. The file is
// opened beneath the folder of all records. Throws Error if it is not a regular file there.
std::string read_patch(const PastLaunch& record);

// Code in git: that of a recorded launch, and the project's current code. Writes only to a temporary folder,
// and never to the user's files, index or repository. Not thread-safe.
class PastCode {
 public:
  // A git tree of the repository.
  struct Tree {
    CodeKept kept = CodeKept::no_git;
    std::string id{};
    int untracked = 0;                   // number of untracked files in the project at that time
    std::set<std::string> submodules{};  // "160000 COMMIT 0\tNAME"
  };

  PastCode(const std::filesystem::path& project, Cancel cancel);

  Tree then(const PastLaunch& record);
  // Has no submodule that is a link here or is behind one.
  Tree now();
  // The names and the unified diff of the project's files that differ. Empty if one of the trees is not kept.
  std::vector<std::string> changed(const Tree& from, const Tree& to);
  std::string diff(const Tree& from, const Tree& to);
  // The files of `then` that git does not have, neither in these trees nor in its index, and that are missing
  // or different in `now`, by size and time. Without hidden files, logs and products of builds.
  std::vector<std::string> changed_without_git(const Tree& from, const Tree& to,
                                               const servers::ProjectState& then,
                                               const servers::ProjectState& now);
  // Writes the project's files in a tree to a folder and returns it. Skips files that pass through a filter
  // (git-lfs), because git alone does not have their contents. Each file's time is derived from its content,
  // and is older than that of any edited file: different versions never look the same to rsync or to Python's
  // __pycache__, and the current files never look older. Submodules are copied from the project, so the tree
  // must have the same ones as now(). Throws Error, also for a submodule that is a link here or is behind
  // one.
  std::filesystem::path write(const Tree& tree);

 private:
  // `patch`: a file in work_.
  Tree tree_of(const PastLaunch& record, const std::filesystem::path& patch);

  const std::filesystem::path project_;
  const Cancel cancel_;
  const TempFolder work_{"remote-code-"};
  Git git_;             // stores its index and new objects in work_
  bool known_ = false;  // whether the project is in a repository
  std::string prefix_;  // of the project within the repository: "", or with a trailing slash
};

}  // namespace remote::project
