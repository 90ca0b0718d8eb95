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

// git without the programs that a repository's settings may name: hooks, a monitor of files, filters, what
// fetches missing objects. Other programs are those of commands that are not used here, and of options that
// its callers set. One thread.
class Git {
 public:
  // Asks in this folder; everything together takes no longer than `patience`.
  Git(std::filesystem::path folder, Cancel cancel, std::chrono::seconds patience);

  const std::filesystem::path& folder() const { return folder_; }
  const Cancel& cancel() const { return cancel_; }
  // What it prints; nullopt where it fails, prints more, or takes too long. `also`: an exit code that is
  // well.
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

  static constexpr std::size_t most_listed = 16U << 20U;

 private:
  const std::filesystem::path folder_;
  const Cancel cancel_;
  const std::chrono::steady_clock::time_point until_;
  const UniqueFd nowhere_ = open_regular("/dev/null", 1);
  std::vector<std::string> variables_;
  std::set<std::string> filters_;
  std::set<std::string> settings_{"core.fsmonitor=false", "core.hooksPath=/dev/null", "core.splitIndex=false",
                                  "apply.ignoreWhitespace=no"};
};

// The words and, behind them, the project's files without .remote: that is not its code, and a configs.yaml
// may have a password.
std::vector<std::string> of_project(std::vector<std::string> words);

// A record with what git says of the project, and the text of its patch, "" where there is none or it is
// larger.
std::pair<PastLaunch, std::string> look_at_git(Git& git, std::size_t most_patch);

}  // namespace remote::project
