#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <remote/exit_status.hpp>
#include <remote/instant.hpp>

// The state of a job, which is one command on one server. All of these are plain values that can be copied
// freely, also between threads.

namespace remote {

enum class JobState {
  starting,   // recorded, not yet known to run
  queued,     // its server has it and will start it later: waiting for Slurm, or for its leases
  running,    // its processes are running
  succeeded,  // exited with 0
  failed,     // exited with another code, or was killed by a signal that no user requested
  killed,     // stopped on request
  lost,       // its result will never be known: it did not start, its server restarted, or its folder is gone
  unknown     // its server does not answer; displayed, but never stored
};

// The name in JSON: "running".
std::string_view to_string(JobState state);
std::optional<JobState> parse_job_state(std::string_view name);
// Whether the state can no longer change: succeeded, failed, killed, lost.
bool is_final(JobState state);
struct Job;
// Whether nothing remains to be done for the job: its state is final, and it has no leftover processes.
bool is_over(const Job& job);
// Whether it ended badly without a request to stop it.
bool has_failed(const Job& job);
// When it ended or, if unknown, when it was last checked or created.
Instant end_of(const Job& job);
// Number of ranks that it runs; 1 also for a job without a launch.
int ranks_of(const Job& job);
// Whether only its server or agent may have failed, which an elastic launch survives: it is lost, an agent
// was killed by a signal, or it was stopped because its own server had been silent for too long.
bool has_left(const Job& job);

// The id of a job or a launch: exactly 32 lowercase hexadecimal digits, so it is safe as a file name and as a
// word in a shell script.
class JobId {
 public:
  JobId() { digits_.fill('0'); }  // 32 zeros: not the id of any job

  // nullopt if the text has any other form.
  static std::optional<JobId> parse(std::string_view text);
  // A random id, from the system's random source.
  static JobId random();

  std::string text() const { return {digits_.data(), digits_.size()}; }

  // NOLINTNEXTLINE(modernize-use-nullptr): there is no pointer here
  friend auto operator<=>(const JobId&, const JobId&) = default;

 private:
  std::array<char, 32> digits_;
};

// Why a job is in its state. The meaning of `number`, `text` and `result` depends on the kind; they are 0, ""
// and nullopt if not mentioned.
struct JobReason {
  enum class Kind {
    none,  // the state says it all
    // killed:
    after_rank,  // stopped by its launch, because rank `number` failed
    after_loss,  // stopped by its launch, because the server `text` was lost
    after_hang,  // stopped by its launch, because the launch had hung for `number` seconds (OnHang)
    by_user,    // stopped by `text` ("ada@laptop", or "" if unknown) with signal `number`. `result` is set if
                // the job did not end by that signal.
    by_launch,  // as by_user, but by the launch itself: it could not be completed, or was interrupted
    not_needed,  // a spare that did not replace a server
    // failed:
    out_of_memory,         // killed by the kernel's out-of-memory killer
    server_out_of_memory,  // its server ran out of memory while it was running
    // After the failure its folder was not writable, so its last output may be missing:
    disk_full,
    quota_used_up,
    disk_read_only,
    by_scheduler,  // also lost: by its scheduler, or its reason for the end: `text` ("TIMEOUT")
    // lost:
    never_started,     // the program that was to start it died first
    not_started,       // its server could not start it: `text`
    no_result,         // it ended, and the server does not know its result
    folder_gone,       // its folder was removed from the server
    processes_gone,    // all of its processes are gone, without a result
    server_restarted,  // before the job ended
    // queued:
    waiting,  // for `text`
    // running:
    told_to_end,         // but its process `number` is still running
    unsupervised,        // its supervisor is gone, so its result will not be known
    no_lifeline,         // it will keep running if a rank on another server fails: `text` says why
    lifeline_dead,       // the same, because its server's lifeline died: `text` says why it was not restarted
    lifeline_restarted,  // its server's lifeline died and has just been restarted
    // unknown:
    no_answer,  // its server did not answer; the last report, if any, is `number` seconds old: `last_state`
    other_machine,  // another machine now has the server's address
    // any state:
    other  // `text`, from a record that a newer version wrote
  };
  Kind kind = Kind::none;
  int number = 0;
  std::string text{};  // may contain unescaped server output
  std::optional<ExitStatus> result{};
  std::optional<JobState> last_state{};

  friend bool operator==(const JobReason&, const JobReason&) = default;
};

// The location of job folders on a server: <project>/<jobs_folder>/<id>.
struct RemoteFolder {
  std::string project;      // "~/name", or an absolute path
  std::string jobs_folder;  // a folder name inside it: ".jobs"
  // NOLINTNEXTLINE(modernize-use-nullptr): there is no pointer here
  friend auto operator<=>(const RemoteFolder&, const RemoteFolder&) = default;
};

// How much of its allocation a Slurm job used, from Slurm's accounting.
struct JobUsage {
  int cpus = 0;         // 0: not in the accounting data
  int cpu_percent = 0;  // of the time of all of its CPUs
  // An upper bound: the memory of the largest task times the number of tasks in its step; 0 if unknown.
  int memory_mib = 0;
  int requested_mib = 0;

  friend bool operator==(const JobUsage&, const JobUsage&) = default;
};

// A thread of a running job that waits for Project::attach(): in breakpoint(), or with pdb_on_error_variable
// (remote/launch.hpp) after an uncaught exception. Reported by the server: untrusted text.
struct DebuggerWait {
  std::string id;           // "1.4121": its number and the process ID
  std::optional<int> rank;  // from RANK in its environment
  std::string file;         // as Python reports it; relative if it is below the command's working directory
  int line = 0;
  std::string error;  // the type of the exception; "" for breakpoint()

  friend bool operator==(const DebuggerWait&, const DebuggerWait&) = default;
};

// A hang of a launch that lasted as long as LaunchRequest::hang_after, as detected by its servers.
// Project::why() can show the data that they saved at that time.
struct Hung {
  Instant at{};                       // when the hang was detected
  std::chrono::seconds stood{0};      // how long it had lasted at that time
  std::optional<Instant> moved_at{};  // when the launch continued; nullopt: it has not, as far as known

  friend bool operator==(const Hung&, const Hung&) = default;
};

enum class RestartCause;  // remote/launch.hpp
enum class NoRestart;     // remote/launch.hpp

// A failed attempt of a launch with restarts, followed by another attempt.
struct Attempt {
  int number = 1;
  Instant began_at{};
  Instant failed_at{};                 // when the first server learned of the failure
  Instant next_at{};                   // when the next attempt began
  RestartCause cause{};                // of the first failure
  std::optional<int> rank{};           // the rank that failed; nullopt: a server was lost
  std::string server{};                // the rank's server, or the lost server; untrusted text
  std::optional<ExitStatus> result{};  // of the rank
  bool left_out = false;  // the next attempt excludes that server: it failed twice in this way, and is sick
  std::vector<std::string> without{};  // servers that are excluded from the next attempt and all later ones

  friend bool operator==(const Attempt&, const Attempt&) = default;
};

// A number and the word before it: "loss 0.31".
struct NamedNumber {
  std::string name;
  double value = 0;
  friend bool operator==(const NamedNumber&, const NamedNumber&) = default;
};

// For a job that is a point of a sweep (remote/sweep.hpp).
struct SweepPoint {
  int number = 0;                                           // from 0, in parameter order
  std::vector<std::pair<std::string, std::string>> values;  // by parameter
  // It is queued, and not yet assigned to a server: Job::server is the server that hands out the points.
  bool waiting = false;
  std::vector<NamedNumber> numbers{};  // the last ones that it printed, set after it has ended if requested

  friend bool operator==(const SweepPoint&, const SweepPoint&) = default;
};

struct Job {
  int key = 0;  // the small number that users type; unique in the project, never reused
  JobId id;     // chosen before anything is sent to a server
  std::string server;
  JobState state = JobState::starting;
  // For a job that has ended: how many of its processes were still alive at the last check. nullopt: none; 0:
  // the server could not check.
  std::optional<int> leftovers;
  std::optional<int> pid;
  std::optional<ExitStatus> result;  // exit code or signal
  JobReason reason;
  std::vector<std::string> tags;
  std::string command;          // as given by the user, secrets masked
  std::optional<JobId> launch;  // shared by the ranks of one launch
  std::optional<int> rank;
  std::optional<int> world_size;
  // For a job that runs several ranks, such as an agent of torchrun: their number. `rank` is the first of
  // them.
  std::optional<int> ranks;
  // Number of jobs that an elastic torchrun launch needs to continue; nullopt: all.
  std::optional<int> needed;
  bool labelled = false;     // each output line that belongs to a rank starts with "[RANK] "
  bool may_restart = false;  // its launch has restarts; after a failure only its lifelines decide
  bool hidden = false;
  // The record is a copy, because the job was started from another folder. Never stored.
  bool elsewhere = false;
  // The program that starts and stops it on its server: "local", "slurm", or "labml" for a labml_remote job.
  // nullopt for a record of an older version, until the server reports it.
  std::optional<std::string> backend;
  // The local project folder that it was started from.
  std::optional<JobId> made_in;
  // A digest of the machine that it was started on; nullopt if unknown, and under Slurm.
  std::optional<std::string> machine;
  RemoteFolder remote_folder;  // where it was started; configs.yaml may have changed since
  Instant created_at;
  std::optional<Instant> started_at;
  std::optional<Instant> ended_at;
  std::optional<Instant> checked_at;  // when its server last reported on it
  // For an ended job: when it failed, which may be earlier than ended_at because a failing process may take
  // seconds to exit. For a running one: when it last wrote to stderr.
  std::optional<ExactInstant> failed_at;
  bool wrote_nothing = false;  // a running job, just reported on, has no output; never stored
  // For a failed job: its last stderr output reports a lost peer, in the words of gloo, NCCL or torch. If
  // another rank failed, this failure is a consequence.
  bool after_peer = false;
  std::optional<JobUsage> usage;      // for an ended Slurm job, once available
  std::optional<Hung> hung{};         // the last time that its launch hung
  std::vector<DebuggerWait> waits{};  // for a running job just reported by its server; never stored
  std::optional<SweepPoint> point{};

  // For the first job of a launch with restarts: the earlier attempts, in order.
  std::vector<Attempt> attempts{};
  std::optional<NoRestart> no_restart{};  // for a launch with restarts: from the server that decided
  // It is on a spare server, waiting to replace a lost one. It has no `pid` until it has replaced one.
  bool spare = false;

  bool has_tag(std::string_view tag) const;
  friend bool operator==(const Job&, const Job&) = default;
};

// Whether it is a spare that has not replaced a server; the launch ignores such a job.
inline bool is_idle(const Job& job) {
  return job.spare && !job.pid;
}

// The launches and jobs that ended most recently.
struct EndedLately {
  Instant since{};                 // only those that ended at this time or later
  std::size_t most = 10;           // maximum number, plus those that ended in the same second
  std::size_t* earlier = nullptr;  // if set, receives the number of the others
};

// A selection of jobs: the named jobs and launches (all jobs if none are named) that have all of the tags.
struct JobSelection {
  // Keys, or unique prefixes of ids (4 digits or more). The name of a launch selects all of its jobs.
  std::vector<std::string> names{};
  // Whole launches: by name (the newest launch with that name), by the key or id prefix of any of their jobs,
  // by their own id prefix, by first and last key ("45-48"), or "last": the newest launch that has a job with
  // the tags.
  std::vector<std::string> launches{};
  std::vector<std::string> tags{};  // all of them must match
  bool hidden = true;               // whether to include hidden jobs; a named job is always included
};

}  // namespace remote
