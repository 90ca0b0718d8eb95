#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/exit_status.hpp>
#include <remote/instant.hpp>
#include <remote/job.hpp>
#include <remote/report.hpp>

// The record of a launch. It is written before anything starts, completed when the launch ends, and outlives
// the records of the launch's jobs.

namespace remote {

struct LaunchSummary {
  int first_key = 0;  // the range of its jobs' keys; 0: no jobs yet
  int last_key = 0;
  JobId id;  // Job::launch of its jobs
  std::string name;
  std::string note;
  std::vector<std::string> tags;
  std::string command;  // secrets masked
  std::vector<std::string> servers;
  int ranks = 0;
  JobState state = JobState::starting;
  std::optional<int> failed_rank;    // the rank that failed first
  std::optional<ExitStatus> result;  // of that rank
  // The git commit of the project on this machine, in hexadecimal; "": no commit, no git, or git took too
  // long.
  std::string commit;
  bool clean = false;  // no file differed from the commit
  Instant began_at;
  std::optional<Instant> ended_at;
  std::vector<NamedNumber> numbers;  // the last value of each name, from the first and the last rank

  friend bool operator==(const LaunchSummary&, const LaunchSummary&) = default;
};

struct PastLaunch : LaunchSummary {
  std::string branch;  // "": none
  int untracked = 0;   // number of files that git neither tracks nor ignores; they are not in the patch
  // The changes since the commit, for `git apply`, without .remote; "": none, or more than 1 MiB.
  std::filesystem::path patch;
  std::vector<std::string> variables;  // the names of the given variables, including those of configs.yaml
  std::string version;                 // of this library
  LaunchRecord beginning;
  std::vector<Job> jobs;                // by rank, in their last known state
  std::vector<std::string> last_lines;  // stderr of the rank that failed first; untrusted text
  bool gone = false;                    // the server of that rank did not answer when the launch had ended
  // The result of `notify:`: "pending", "sent", or why the notification failed; "": none was requested.
  // Untrusted text.
  std::string news;
  bool changed = false;  // tracked files differed from the commit
  // Submodules with uncommitted changes ("libs/sub/"); these are not in the patch.
  std::vector<std::string> changed_in;
  // The request, with the masked command; nullopt: the record is from an older version. The variables in
  // `secrets` have no value here.
  std::optional<LaunchRequest> request;
  std::vector<std::string> secrets;
};

// Whether git can restore the code of a launch.
enum class CodeKept {
  kept,       // the commit and its patch
  no_git,     // the project was not in git then, or is not now
  no_commit,  // git has lost the commit
  no_patch,   // its changes since the commit were larger than the limit for patches
  not_sent,   // the code on the servers differed from that in git
  submodules  // it has submodules, whose files are not in the commit
};

struct LaunchDifference {
  enum class Part { result, command, options, variables, packages, servers, numbers };
  Part part = Part::result;
  std::string name;                  // "torch", "LR", "loss"; "" for the part `command`
  std::vector<std::string> servers;  // the servers that it applies to; empty: the launch as a whole
  std::vector<std::optional<std::string>> values;  // by launch; nullopt: none, or unknown. Untrusted text
};
std::vector<LaunchDifference> differences(const std::vector<PastLaunch>& launches);

struct LaunchDiff {
  PastLaunch from;
  std::optional<PastLaunch> to;  // nullopt: the current files; only the code is compared
  std::vector<LaunchDifference> differences;
  CodeKept code_from = CodeKept::no_git;
  CodeKept code_to = CodeKept::no_git;
  // The files that differ: tracked files or, if the code of either one is not kept, the sent files, compared
  // by size and time.
  std::vector<std::string> files;
  bool compared = false;  // whether `files` is known
  // If the code of both is kept: files of `from` that were sent and git does not have, such as ignored ones,
  // and that are missing or different in `to`, by size and time.
  std::vector<std::string> unkept;
  std::string code;  // a unified diff of tracked files, if both are kept; untrusted text
};

struct RerunRequest {
  std::string launch = "last";           // as in History
  Env env{};                             // additional variables, which override
  std::vector<std::string> servers{};    // replaces its servers
  std::optional<std::string> command{};  // replaces its command
  std::string more{};                    // appended to the command: words for the server's shell
  std::optional<std::string> name{};     // default: the same name
  std::string note{};
  bool tree = true;  // for a frozen launch: run in its tree again; otherwise take its code from git
};

// What can be restored of a past launch.
struct Rerun {
  // same: the current files are its code. frozen: its servers had its code in a tree; the rerun fails if they
  // have lost it. kept: git has its code. gone: only the current files can be used.
  enum class Code { same, frozen, kept, gone };
  PastLaunch launch;
  LaunchRequest request;  // the request of the rerun
  Code code = Code::gone;
  CodeKept why = CodeKept::kept;     // if `code` is gone
  std::vector<std::string> changed;  // files that differ here now, as far as known
  // If `code` is kept: its files that git does not have, and that are missing or different here now.
  std::vector<std::string> unkept;
  std::vector<std::string> missing;  // names of secrets whose values are not available
};

struct HistoryRequest {
  std::vector<std::string> tags{};  // launches that have all of these
  bool failed = false;              // only those that failed or were lost
  std::optional<Instant> since{};   // only those that started at this time or later
  // Sort by the last value of this number, lowest first, launches without it last. "": by time.
  std::string sort{};
};

// The recorded launches of a project on this machine. History contacts no server, so the state of an
// unfinished launch is its last known state; Project::history() asks the servers. A launch is named by the
// key of any of its jobs, "45-48", the start of its id (4 digits or more), its name (the newest launch with
// that name), or "last". Throws Error (usage) if there is no such launch. Thread-safe.
class History {
 public:
  // Opens the history of the project in `folder`. Throws Error (usage) if its configs.yaml is invalid.
  explicit History(const std::filesystem::path& folder);

  // Matching launches, newest first. `problems` receives an entry "FILE: why" for each unreadable record.
  std::vector<LaunchSummary> list(const HistoryRequest& request = {},
                                  std::vector<std::string>* problems = nullptr) const;
  // Whether there may be launches whose outcome is unknown; Project::jobs() asks the servers.
  bool has_open() const;
  PastLaunch launch(const std::string& launch) const;
  void set_note(const std::string& launch, const std::string& note) const;
  // The differences between two launches, or between a launch and the current files ("now"). `cancel`
  // interrupts it.
  LaunchDiff diff(const std::string& from, const std::string& to = "now",
                  const Cancel& cancel = Cancel()) const;
  // The numbers that configs.yaml lists in `history: {columns: […]}`.
  std::vector<std::string> columns() const;

 private:
  friend class Project;
  std::filesystem::path project_;
  std::filesystem::path store_;
  std::vector<Job> unknown_;  // jobs whose servers did not answer just now
};

}  // namespace remote
