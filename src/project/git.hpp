#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/history.hpp>

#include "base/files.hpp"

namespace remote::project {

// The repository that a folder belongs to.
struct GitRepository {
  std::filesystem::path top;     // the folder that has .git
  std::filesystem::path folder;  // .git itself, or the folder that the file .git names
};

// The repository of the nearest .git at or above this folder; nullopt: none, or not to be believed. Believed
// is what this user owns and what has all of its files in itself: a repository that came with a project can
// name another repository, or folders of this machine, as its own.
std::optional<GitRepository> find_repository(const std::filesystem::path& folder);

// git without the programs that a repository's settings may name: hooks, a monitor of files, filters, what
// fetches missing objects. Other programs are those of commands that are not used here, and of options that
// its callers set. Without the repository's word about where its files are, either. One thread.
class Git {
 public:
  // Asks in this folder; everything together takes no longer than `patience`.
  Git(const std::filesystem::path& folder, Cancel cancel, std::chrono::seconds patience);

  const std::filesystem::path& folder() const { return folder_; }
  const Cancel& cancel() const { return cancel_; }
  const std::optional<GitRepository>& repository() const { return repository_; }
  // What it prints; nullopt if there is no repository, or it fails, prints more, or takes too long. `also`:
  // an exit code that counts as success.
  std::optional<std::string> ask(const std::vector<std::string>& words, std::size_t most = most_listed,
                                 int also = 0) const;
  // Takes away the programs through which files pass before they are compared, and hooks of newer versions.
  // Also the user's own: they may ask the repository's settings for programs, as git-lfs does. False: ask
  // nothing more.
  bool without_drivers();
  // The names of the filters that were taken away.
  const std::set<std::string>& filters() const { return filters_; }
  // An environment variable of git's, for all that is asked from now on.
  void set(const std::string& name, const std::string& value) { variables_.push_back(name + "=" + value); }
  // A Git for another folder, with the time that this one has left.
  Git in(const std::filesystem::path& folder) const {
    return {folder, cancel_, until_, find_repository(folder)};
  }
  // The same repository with its files elsewhere: at `top`, asked in a folder of that.
  Git with_files(const std::filesystem::path& top, const std::filesystem::path& folder) const {
    return {folder, cancel_, until_, GitRepository{top, repository_.value().folder}};
  }

  static constexpr std::size_t most_listed = 16U << 20U;

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
  std::set<std::string> settings_{"core.fsmonitor=false",    "core.hooksPath=/dev/null",
                                  "core.splitIndex=false",   "core.protectHFS=true",
                                  "core.protectNTFS=true",   "diff.orderFile=/dev/null",
                                  "submodule.recurse=false", "apply.ignoreWhitespace=no"};
};

// The words and, behind them, the project's files without .remote: that is not its code, and a configs.yaml
// may have a password.
std::vector<std::string> of_project(std::vector<std::string> words);

// The submodules of the project in git's index, "160000 COMMIT 0\tNAME", and the name that such a line has.
std::vector<std::string> listed_submodules(const Git& git);
std::string name_of_submodule(const std::string& line);

// A record with the state of the project in git, and the text of its patch, "" if there is none or it is
// larger.
std::pair<PastLaunch, std::string> look_at_git(Git& git, std::size_t most_patch);

}  // namespace remote::project
