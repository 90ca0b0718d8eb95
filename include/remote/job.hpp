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

// What is known about a job, which is one command on one server. All of these are plain values: copy them
// freely, also between threads.

namespace remote {

enum class JobState {
  starting,   // recorded, and not yet known to run
  queued,     // its server has it, and will start it later: for Slurm, or for its leases
  running,    // its processes live
  succeeded,  // it exited with 0
  failed,     // it exited with another code, or a signal ended it that nobody had asked for
  killed,     // it was told to end, and it ended
  lost,       // it will never tell a result: it did not start, or its server restarted, or its folder is gone
  unknown     // its server does not answer; shown, but never stored
};

// The state's name, as JSON has it: "running".
std::string_view to_string(JobState state);
std::optional<JobState> parse_job_state(std::string_view name);
// Whether no news can change it: succeeded, failed, killed, lost.
bool is_final(JobState state);
struct Job;
// Whether there is nothing of it to look after any more: its state is final, and it has left no processes
// behind.
bool is_over(const Job& job);
// Whether it ended badly and nobody asked for that.
bool has_failed(const Job& job);
// When it ended, as far as that is known: else when it was last heard of, or made.
Instant end_of(const Job& job);
// How many ranks it runs; 1 also for a job without a launch.
int ranks_of(const Job& job);
// Whether its end may be that of its server or of its agent alone, which an elastic launch survives: it is
// lost, or a signal ended an agent, or it was ended because its own server had been silent for too long.
bool has_left(const Job& job);

// The id of a job, or of a launch: 32 lower-case hexadecimal digits and nothing else, so it is safe as a
// file's name and as a word of a shell script.
class JobId {
 public:
  JobId() { digits_.fill('0'); }  // 32 zeros: the id of no job

  // nullopt for a text of any other form.
  static std::optional<JobId> parse(std::string_view text);
  // A new one, from the system's random source.
  static JobId random();

  std::string text() const { return {digits_.data(), digits_.size()}; }

  // NOLINTNEXTLINE(modernize-use-nullptr): there is no pointer here
  friend auto operator<=>(const JobId&, const JobId&) = default;

 private:
  std::array<char, 32> digits_;
};

// Why a job is in its state. What `number`, `text` and `result` mean depends on the kind; where nothing is
// said of them they are 0, "" and nothing.
struct JobReason {
  enum class Kind {
    none,  // the state says everything
    // killed:
    after_rank,  // its launch ended it, because rank `number` failed
    after_loss,  // its launch ended it, because the server `text` was lost
    after_hang,  // its launch ended it, because it had stood still for `number` seconds (OnHang)
    by_user,  // `text` ("ada@laptop", or "" where it is not known) ended it with signal `number`. `result` is
              // there if the job ended otherwise than by that signal.
    by_launch,   // as by_user, by the launch itself: it was not completed, or was interrupted
    not_needed,  // a spare that replaced no server
    // failed:
    out_of_memory,         // the kernel ended it, for want of memory
    server_out_of_memory,  // its server ran out of memory while it ran
    // Its folder could not take files after it had failed, so its last output may be missing:
    disk_full,
    quota_used_up,
    disk_read_only,
    by_scheduler,  // also lost: its scheduler ended it, or says why it ended: `text` ("TIMEOUT")
    // lost:
    never_started,     // the program that was to start it died before
    not_started,       // its server could not start it: `text`
    no_result,         // it ended, and the server does not know how
    folder_gone,       // its folder was removed from the server
    other_machine,     // also unknown: another machine has the server's address now
    processes_gone,    // nothing of it lives, and there is no result
    server_restarted,  // before it ended
    // queued:
    waiting,  // for `text`
    // running:
    told_to_end,    // but its process `number` lives on
    unsupervised,   // its supervisor is gone, so its result will not be known
    no_lifeline,    // its launch will not end when a rank on another server fails: `text` says why
    lifeline_dead,  // the same, because its server's lifeline has died: `text` says why there is no new one
    lifeline_restarted,  // its server's lifeline had died, and was started again just now
    // unknown:
    no_answer,  // its server did not answer; the last news, if any, are `number` seconds old: `last_state`
    // any state:
    other  // `text`, from the record of a newer program
  };
  Kind kind = Kind::none;
  int number = 0;
  std::string text{};  // may hold what a server said, as it said it
  std::optional<ExitStatus> result{};
  std::optional<JobState> last_state{};

  friend bool operator==(const JobReason&, const JobReason&) = default;
};

// Where jobs have their folders on a server: <project>/<jobs_folder>/<id>.
struct RemoteFolder {
  std::string project;      // "~/name", or an absolute path
  std::string jobs_folder;  // a name in it: ".jobs"
  // NOLINTNEXTLINE(modernize-use-nullptr): there is no pointer here
  friend auto operator<=>(const RemoteFolder&, const RemoteFolder&) = default;
};

// How much of what it was given a job of Slurm used, by Slurm's accounting.
struct JobUsage {
  int cpus = 0;         // 0: the accounting does not say
  int cpu_percent = 0;  // of the time of all its CPUs
  // The largest task's memory times the tasks of its step, which is the most that it can have been; 0 where
  // that is not known.
  int memory_mib = 0;
  int requested_mib = 0;

  friend bool operator==(const JobUsage&, const JobUsage&) = default;
};

// A thread of a running job that waits for Project::attach(): in breakpoint(), or with pdb_on_error_variable
// (remote/launch.hpp) after an exception that nobody caught. What the server says: foreign text.
struct DebuggerWait {
  std::string id;           // "1.4121": its number and the process
  std::optional<int> rank;  // RANK of its environment
  std::string file;         // as Python has it; relative where it is below the command's folder
  int line = 0;
  std::string error;  // the exception's type; "": breakpoint()

  friend bool operator==(const DebuggerWait&, const DebuggerWait&) = default;
};

// That a launch stood still for as long as LaunchRequest::hang_after allows, as its servers found out.
// Project::why() can show what they kept of that moment.
struct Hung {
  Instant at{};                       // when that was found out
  std::chrono::seconds stood{0};      // for how long it had stood still by then
  std::optional<Instant> moved_at{};  // when it went on; nullopt: not as far as is known

  friend bool operator==(const Hung&, const Hung&) = default;
};

enum class RestartCause;  // remote/launch.hpp
enum class NoRestart;     // remote/launch.hpp

// An attempt of a launch with restarts that failed and was followed by another one.
struct Attempt {
  int number = 1;
  Instant began_at{};
  Instant failed_at{};                 // when the first server learned of the failure
  Instant next_at{};                   // when the next attempt began
  RestartCause cause{};                // what failed first
  std::optional<int> rank{};           // that failed; nullopt: a server was lost
  std::string server{};                // of the rank, or the lost one; foreign text
  std::optional<ExitStatus> result{};  // of the rank
  bool left_out = false;  // the next attempt is without that server, as it failed so twice: it is sick
  std::vector<std::string> without{};  // servers that are not part of the next attempt and later ones

  friend bool operator==(const Attempt&, const Attempt&) = default;
};

// A number and the word that stood before it: "loss 0.31".
struct NamedNumber {
  std::string name;
  double value = 0;
  friend bool operator==(const NamedNumber&, const NamedNumber&) = default;
};

// Of a job that is a point of a sweep (remote/sweep.hpp).
struct SweepPoint {
  int number = 0;                                           // from 0, in the order of the parameters
  std::vector<std::pair<std::string, std::string>> values;  // by parameter
  // It waits for its turn, and no server has it yet: Job::server is the one that gives out the points.
  bool waiting = false;
  std::vector<NamedNumber> numbers{};  // that it printed last, once it has ended and that was asked

  friend bool operator==(const SweepPoint&, const SweepPoint&) = default;
};

struct Job {
  int key = 0;  // the small number that users type; unique in the project, never given twice
  JobId id;     // made before anything is sent to a server
  std::string server;
  JobState state = JobState::starting;
  // Of a job that has ended: how many of its processes still lived when its server was last asked. Nothing
  // for none; 0 where the server could not look for them.
  std::optional<int> leftovers;
  std::optional<int> pid;
  std::optional<ExitStatus> result;  // exit code or signal
  JobReason reason;
  std::vector<std::string> tags;
  std::string command;          // as the user gave it, secrets masked
  std::optional<JobId> launch;  // shared by the ranks of one launch
  std::optional<int> rank;
  std::optional<int> world_size;
  // Of a job that runs several ranks, as an agent of torchrun does: how many. `rank` is the first of them.
  std::optional<int> ranks;
  bool labelled = false;  // each line of its output that is a rank's begins with "[RANK] "
  // The number of jobs that an elastic launch of torchrun needs to continue; nullopt: all.
  std::optional<int> needed;
  bool may_restart = false;  // its launch has restarts, and its lifelines alone decide after a failure
  bool hidden = false;
  // What starts and ends it on its server: "local", "slurm", or "labml" for a job of labml_remote. Nothing in
  // the record of an older build, until the server says it.
  std::optional<std::string> backend;
  // The project's folder on this machine that it was started from.
  std::optional<JobId> made_in;
  // A digest of the machine that it was started on; nothing where that is not known, and under Slurm.
  std::optional<std::string> machine;
  // The record is a copy: the job was started from another folder. Never stored.
  bool elsewhere = false;
  RemoteFolder remote_folder;  // where it was started; configs.yaml may name another place by now
  Instant created_at;
  std::optional<Instant> started_at;
  std::optional<Instant> ended_at;
  std::optional<Instant> checked_at;  // when its server last told about it
  // Of an ended job: when it failed; may lie before ended_at, as a failing process may need seconds to exit.
  // Of a running one: when it last wrote to stderr.
  std::optional<ExactInstant> failed_at;
  bool wrote_nothing = false;  // of a running job whose server has just told: no byte of output; never stored
  // Of a job that failed: what it last wrote to its stderr says that another rank was gone, as gloo, NCCL and
  // torch say it. Its failure follows from another one, where there is another.
  bool after_peer = false;
  std::optional<JobUsage> usage;      // of an ended job of Slurm, once that is known
  std::optional<Hung> hung{};         // the last time that its launch stood still for too long
  std::vector<DebuggerWait> waits{};  // of a running job whose server has just told; never stored
  std::optional<SweepPoint> point{};

  // Of the first job of a launch with restarts: the attempts before the present one, in order.
  std::vector<Attempt> attempts{};
  std::optional<NoRestart> no_restart{};  // of a launch with restarts, from the server that decided
  // It is on a spare server, and waits there to replace one that is lost. Without `pid` it has not done so
  // yet.
  bool spare = false;

  bool has_tag(std::string_view tag) const;
  friend bool operator==(const Job&, const Job&) = default;
};

// Whether it is a spare that has replaced nobody: then it counts for nothing in its launch.
inline bool is_idle(const Job& job) {
  return job.spare && !job.pid;
}

// The launches and jobs that are over and ended last.
struct EndedLately {
  Instant since{};                 // those that ended then or later
  std::size_t most = 10;           // so many of them, and others that ended in the same second
  std::size_t* earlier = nullptr;  // is set to the number of all others
};

// Which jobs are meant: those that are named, by themselves or with their launch (where nothing is named:
// all), as far as they have the tags.
struct JobSelection {
  // Keys, or unambiguous starts of ids (4 digits or more). The name of a launch means the whole of it.
  std::vector<std::string> names{};
  // Whole launches: by the name, of the newest one that has it, by the key or the start of the id of any of
  // its jobs, by the start of its own id, by the first and the last key ("45-48"), or "last": the newest one
  // that has a job with the tags.
  std::vector<std::string> launches{};
  std::vector<std::string> tags{};  // all of them
  bool hidden = true;               // whether hidden jobs count; one that is named always does
};

}  // namespace remote
