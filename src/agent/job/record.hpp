#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/host.hpp"
#include "agent/host/path.hpp"
#include "agent/host/processes.hpp"
#include "rules/job_history.hpp"
#include "wire/jobs.hpp"

// The records in a job's folder (docs/protocol.md, "The folder of a job").

namespace remote::agent {

struct JobsFolder {
  Path project;  // absolute
  Path jobs;

  static JobsFolder of(const Host& host, const wire::JobsPlace& place);
};

struct Supervisor {
  ProcessId id;
  std::string boot;
  bool has_session = false;  // it is a session leader
};

struct JobRecord {
  std::string id;
  Path folder;
  std::string backend = "local";
  // nullopt if the file is missing, empty or incomplete. The pid is 0 under Slurm or if the text is invalid.
  std::optional<Supervisor> supervisor{};
  bool is_claimed = false;            // the job will never start (see claim())
  std::optional<ProcessId> main{};    // its start is 0 for jobs of labml_remote, which record only a pid
  rules::JobHistory recorded{};       // from the journal
  std::optional<wire::JobEnd> end{};  // from the record or, under Slurm, as just queried

  bool never_started() const { return recorded.never_starts_since.has_value(); }
  bool has_result() const { return end.has_value() || never_started(); }
};

// Returns nullopt if the folder is missing or inaccessible.
std::optional<JobRecord> read_record(const Host& host, const JobsFolder& folder, const std::string& id);

// The record "PID START BOOT" of a supervisor's process (`lifeline.pid`, and `runner` of a sweep).
struct ProcessRecord {
  ProcessId process;
  std::string boot;  // "" if it is missing

  bool is_of_this_boot(const Host& host) const { return boot == read_boot_id(host); }
};
std::optional<ProcessRecord> read_process_record(const Path& file);
// The record of this process, without a newline.
std::string make_process_record(const Host& host);

// Parses PID START, the first two words of process records (`lifeline.pid`).
std::optional<ProcessId> parse_process_id(const std::vector<std::string>& words);

// A line "KIND CODE MS BY" of the records of ranks. parse_end() returns nullopt for other text.
struct EndLine {
  bool never_started = false;
  wire::JobEnd end;
};
std::optional<EndLine> parse_end(std::string_view line);
std::string to_end_line(const wire::JobEnd& end);

// Stop words, as in BY: "user:ada%40laptop", "rank:3", "lost:SERVER", "hang:60", "launch".
std::string to_stop_word(const wire::StoppedBy& by);
std::optional<wire::StoppedBy> parse_stop_word(std::string_view word);

// Prevents a job from starting, unless its supervisor is already running. Both create the file `supervisor`,
// which acts as the lock between them. Returns whether the claim succeeded.
bool claim(const Host& host, const JobsFolder& folder, const std::string& id);
// Records the end of a job, in the fallback folder if the job's folder cannot be written. Keeps an existing
// result.
bool put_result(const Host& host, const JobRecord& job, const wire::JobEnd& end);
// Records that a job never started, after claim() or if its supervisor died early.
bool put_never_started(const JobsFolder& folder, const std::string& id);

// Returns why the job's folder cannot be checked: the project is missing, or a folder is inaccessible.
// Returns "" if there is no obstacle.
std::string find_obstacle(const JobsFolder& folder, const std::string& id);

// Writes a file atomically, with mode 0600. Returns false on failure. The text must end with a newline;
// otherwise readers consider it incomplete.
bool put_file(const Path& path, std::string_view text);
// Like put_file(), but the text is on the disk before it replaces the old one.
bool put_synced_file(const Path& path, std::string_view text);
// Creates a file. Returns false if it already exists or cannot be written.
bool create_file(const Path& path, std::string_view text);

}  // namespace remote::agent
