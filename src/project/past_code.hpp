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

// The digest of what all servers had (servers::SentState); "": not known, or not the same.
std::string sent_digest(const PastLaunch& record);
// That of the tree of a frozen launch.
std::string tree_digest(const PastLaunch& record);
// The files of that; nullopt: their list was not kept.
std::optional<servers::ProjectState> files_sent(const config::Config& config, const PastLaunch& record);

// Code as git has it: of a launch on record, and of the project now. All that is made lies in a temporary
// folder: the user's files, index and repository stay as they are. One thread.
class PastCode {
 public:
  // A tree of git's, within the repository.
  struct Tree {
    CodeKept kept = CodeKept::no_git;
    std::string id{};
    int untracked = 0;                   // files that the project had besides
    std::set<std::string> submodules{};  // "160000 COMMIT 0\tNAME"
  };

  PastCode(const std::filesystem::path& project, Cancel cancel);

  Tree then(const PastLaunch& record);
  Tree now();
  // The project's files that differ, and the unified diff. Empty where one of them is not kept.
  std::vector<std::string> changed(const Tree& from, const Tree& to);
  std::string diff(const Tree& from, const Tree& to);
  // Writes the project's files of a tree that is kept, but for those that pass through a filter (git-lfs),
  // whose content git alone does not have; returns their folder. A file's time comes from its content, and is
  // older than any that was edited: two versions never look alike to rsync or to Python's __pycache__, and
  // what is here now never looks older. Submodules are copied from the project: only for a tree that has the
  // same ones as now(). Throws Error.
  std::filesystem::path write(const Tree& tree);

 private:
  Tree tree_of(const PastLaunch& record, const std::filesystem::path& patch);

  const std::filesystem::path project_;
  const Cancel cancel_;
  const TempFolder work_{"remote-code-"};
  Git git_;             // with an index and new objects in work_
  bool known_ = false;  // the project is in a repository
  std::string prefix_;  // of the project in it: "", or with a slash at the end
};

}  // namespace remote::project
