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

// A launch as it is remembered. Its record is written before anything starts and completed when it ends, and
// it outlives the records of its jobs.

namespace remote {

// A launch in a list.
struct LaunchSummary {
  int first_key = 0;  // of its jobs; 0: it has none yet
  int last_key = 0;
  JobId id;  // Job::launch of its jobs
  std::string name;
  std::string note;
  std::vector<std::string> tags;
  std::string command;  // secrets masked
  std::vector<std::string> servers;
  int ranks = 0;
  JobState state = JobState::starting;
  std::optional<int> failed_rank;    // that failed first
  std::optional<ExitStatus> result;  // of that rank
  // What git says of the project on this machine, in hexadecimal; "": no commit, no git, or git took too
  // long.
  std::string commit;
  bool clean = false;  // nothing differed from the commit
  Instant began_at;
  std::optional<Instant> ended_at;
  std::vector<NamedNumber> numbers;  // the last of each name, by its first and its last rank

  friend bool operator==(const LaunchSummary&, const LaunchSummary&) = default;
};

struct PastLaunch : LaunchSummary {
  std::string branch;  // "": none
  int untracked = 0;   // files that git neither has nor ignores; they are not in the patch
  // What differed from the commit, for `git apply`, without .remote; "": nothing, or more than 1 MiB.
  std::filesystem::path patch;
  std::vector<std::string> variables;  // the names of those that were given, also by configs.yaml
  std::string version;                 // of this library
  LaunchRecord beginning;
  std::vector<Job> jobs;                // by rank, as they were when they were last heard of
  std::vector<std::string> last_lines;  // of what the rank that failed first wrote to stderr; foreign text
  // What became of `notify:`: "pending", "sent", or why nobody was told; "": nobody is to be told. Foreign
  // text.
  std::string news;
  bool changed = false;  // files that git has differed from the commit
  // Submodules with changes that were not committed in them ("libs/sub/"); these are not in the patch.
  std::vector<std::string> changed_in;
  // What was asked for, with the masked command; nullopt: an older version wrote the record. The variables in
  // `secrets` have no value here.
  std::optional<LaunchRequest> request;
  std::vector<std::string> secrets;
};

// Whether the code of a launch can be had again from git.
enum class CodeKept {
  kept,       // the commit and its patch
  no_git,     // git did not know the project then, or does not now
  no_commit,  // git no longer has the commit
  no_patch,   // it differed from the commit by more than is kept
  not_sent,   // the servers had other code than git has
  submodules  // it has submodules, whose files the commit does not have
};

// Something in which launches differ.
struct LaunchDifference {
  enum class Part { result, command, options, variables, packages, servers, numbers };
  Part part = Part::result;
  std::string name;                                // "torch", "LR", "loss"; of the part command: ""
  std::vector<std::string> servers;                // where it is so; none: of the launch
  std::vector<std::optional<std::string>> values;  // by launch; nullopt: none, or unknown. Foreign text
};
std::vector<LaunchDifference> differences(const std::vector<PastLaunch>& launches);

struct LaunchDiff {
  PastLaunch from;
  std::optional<PastLaunch> to;  // nullopt: what is here now, of which there is only code
  std::vector<LaunchDifference> differences;
  CodeKept code_from = CodeKept::no_git;
  CodeKept code_to = CodeKept::no_git;
  // Those that differ: of what git has; where either code is not kept, of what was sent, by size and time.
  std::vector<std::string> files;
  bool compared = false;  // `files` is known
  std::string code;       // a unified diff of what git has, where both are kept; foreign text
};

// A launch that is to start again.
struct RerunRequest {
  std::string launch = "last";           // as History takes it
  Env env{};                             // more variables, which win
  std::vector<std::string> servers{};    // in place of its own
  std::optional<std::string> command{};  // in place of its own
  std::string more{};                    // put behind the command: words of a line for the shell
  std::optional<std::string> name{};     // default: its own
  std::string note{};
  bool tree = true;  // of a frozen launch: run in its tree again; else its code is taken from git
};

// What can be had of it again.
struct Rerun {
  // same: what is here is what it ran. frozen: its servers had it in a tree; nothing starts where they have
  // it no longer. kept: git has it. gone: only what is here now can be used.
  enum class Code { same, frozen, kept, gone };
  PastLaunch launch;
  LaunchRequest request;  // what will be asked for
  Code code = Code::gone;
  CodeKept why = CodeKept::kept;     // where it is gone
  std::vector<std::string> changed;  // files that differ here now, as far as is known
  std::vector<std::string> missing;  // secrets whose values are gone
};

struct HistoryRequest {
  std::vector<std::string> tags{};  // launches that have all of these
  bool failed = false;              // only those that failed or were lost
  std::optional<Instant> since{};   // only those that began then or later
  // By the last value of this number, the lowest first; those without it come last. "": by time.
  std::string sort{};
};

// The launches of a project, as they are remembered on this machine. It asks no server, so the state of one
// that goes on is the last that was heard; Project::history() asks. A launch is named
// by the key of any of its jobs, "45-48", the start of its id (4 digits or more), its name (of several the
// newest), or "last"; Error (usage) where there is none. Any thread.
class History {
 public:
  // The project with this folder. Throws Error (usage) where its configs.yaml cannot be read.
  explicit History(const std::filesystem::path& folder);

  // Those that fit, the newest first. `problems`: of records that cannot be read, "FILE: why".
  std::vector<LaunchSummary> list(const HistoryRequest& request = {},
                                  std::vector<std::string>* problems = nullptr) const;
  // Whether there may be launches of which it is not known how they ended: Project::jobs() asks.
  bool has_open() const;
  PastLaunch launch(const std::string& launch) const;
  void set_note(const std::string& launch, const std::string& note) const;
  // What differs between a launch and another, or what is here ("now"). Interrupted by `cancel`.
  LaunchDiff diff(const std::string& from, const std::string& to = "now",
                  const Cancel& cancel = Cancel()) const;
  // The numbers that configs.yaml wants to see: `history: {columns: […]}`.
  std::vector<std::string> columns() const;

 private:
  friend class Project;
  std::filesystem::path project_;
  std::filesystem::path store_;
  std::vector<Job> unknown_;  // jobs whose servers have just not answered
};

}  // namespace remote
