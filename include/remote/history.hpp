#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <remote/exit_status.hpp>
#include <remote/job.hpp>
#include <remote/report.hpp>

// A launch as it is remembered. Its record is written before anything starts and completed when it ends, and
// it outlives the records of its jobs.

namespace remote {

// A number and the word that stood before it: "loss 0.31".
struct NamedNumber {
  std::string name;
  double value = 0;
  friend bool operator==(const NamedNumber&, const NamedNumber&) = default;
};

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
  bool clean = false;         // nothing differed from the commit
  std::int64_t began_at = 0;  // seconds since the epoch
  std::optional<std::int64_t> ended_at;
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
};

struct HistoryRequest {
  std::vector<std::string> tags{};      // launches that have all of these
  bool failed = false;                  // only those that failed or were lost
  std::optional<std::int64_t> since{};  // only those that began then or later: seconds since the epoch
  // By the last value of this number, the lowest first; those without it come last. "": by time.
  std::string sort{};
};

// The launches of a project, as they are remembered on this machine. Asks no server: the calls of Project
// that do (jobs, status, follow, wait …) complete the records of launches that have ended. A launch is named
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
  // The numbers that configs.yaml wants to see: `history: {columns: […]}`.
  std::vector<std::string> columns() const;

 private:
  std::filesystem::path project_;
  std::filesystem::path store_;
};

}  // namespace remote
