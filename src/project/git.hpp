#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/history.hpp>

#include "base/files.hpp"

namespace remote::project {

struct GitRepository {
  std::filesystem::path top;     // the folder that contains .git
  std::filesystem::path folder;  // .git itself, or the folder that the file .git points to
};

// The repository of the nearest .git at or above this folder; nullopt: none, or not trusted. A repository is
// trusted if this user owns it and all of its files are inside it: one that came with a project could claim
// another repository, or other folders of this machine, as its own.
std::optional<GitRepository> find_repository(const std::filesystem::path& folder);

// Runs git without the programs that a repository's settings may name: hooks, a file system monitor, filters,
// and programs that fetch missing objects. Git commands that start other programs are not used here, or the
// callers pass options against that, such as --no-ext-diff. The repository's settings for the location of its
// files are ignored too. Not thread-safe.
class Git {
 public:
  // Runs git in this folder; all calls together take at most `patience`.
  Git(const std::filesystem::path& folder, Cancel cancel, std::chrono::seconds patience);

  const std::filesystem::path& folder() const { return folder_; }
  const Cancel& cancel() const { return cancel_; }
  const std::optional<GitRepository>& repository() const { return repository_; }
  // The output; nullopt if there is no repository, or if git fails, prints more than `most`, or takes too
  // long. `also`: another exit code that counts as success. `input`: an open file for its standard input, by
  // default /dev/null.
  std::optional<std::string> ask(const std::vector<std::string>& words, std::size_t most = most_listed,
                                 int also = 0, int input = -1) const;
  // Disables filters, which files pass through before they are compared, and hooks of newer versions. This
  // includes the user's own, because they may read the names of programs from the repository's settings, as
  // git-lfs does. False: do not run git again.
  bool without_drivers();
  // Makes later calls also compare files marked by `git update-index --assume-unchanged` or
  // `--skip-worktree`, except missing files of a sparse checkout. Uses a copy of the index. False: git does
  // not see all changes. Throws Error if there is no space for the copy.
  bool check_marked_files();
  // The names of the disabled filters.
  const std::set<std::string>& filters() const { return filters_; }
  // Sets an environment variable for all later calls.
  void set(const std::string& name, const std::string& value) { variables_.push_back(name + "=" + value); }
  // A Git for another folder, with the remaining time of this one.
  Git in(const std::filesystem::path& folder) const {
    return {folder, cancel_, until_, find_repository(folder)};
  }
  // The same repository with its files in another place: at `top`; runs in a folder within that.
  Git with_files(const std::filesystem::path& top, const std::filesystem::path& folder) const {
    return {folder, cancel_, until_, GitRepository{top, repository_.value().folder}};
  }

  static constexpr std::size_t most_listed = 16U << 20U;
  static constexpr std::size_t most_files = 256U << 20U;  // for lists of all files

 private:
  using Moment = std::chrono::steady_clock::time_point;
  Git(std::filesystem::path folder, Cancel cancel, Moment until, std::optional<GitRepository> repository);

  const std::filesystem::path folder_;
  const Cancel cancel_;
  const Moment until_;
  const std::optional<GitRepository> repository_;
  const UniqueFd nowhere_ = open_regular("/dev/null", 1);
  std::vector<std::string> variables_;
  std::set<std::string> filters_;
  std::unique_ptr<TempFolder> index_;  // contains the copy, if there is one
  std::set<std::string> settings_{"core.fsmonitor=false",    "core.hooksPath=/dev/null",
                                  "core.splitIndex=false",   "core.protectHFS=true",
                                  "core.protectNTFS=true",   "diff.orderFile=/dev/null",
                                  "submodule.recurse=false", "apply.ignoreWhitespace=no"};
};

// Appends the project's files, without .remote, to the arguments: that is not code, and a configs.yaml may
// contain a password.
std::vector<std::string> of_project(std::vector<std::string> words);

// The project's submodules in git's index, as lines "160000 COMMIT 0\tNAME", and the name in such a line.
std::vector<std::string> listed_submodules(const Git& git);
std::string name_of_submodule(const std::string& line);
// Whether the submodule's folder exists, and no part of its path within the project is a link.
bool has_folder(const std::filesystem::path& project, const std::string& submodule);

// The names of the project's files in git's index, including those in its submodules; nullopt if git fails.
std::optional<std::set<std::string>> list_tracked(const Git& git);

// A record with the state of the project in git, and its patch; the patch is "" if there is none or it is
// larger than `most_patch`.
std::pair<PastLaunch, std::string> look_at_git(Git& git, std::size_t most_patch);

}  // namespace remote::project
