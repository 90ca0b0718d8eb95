#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <remote/job.hpp>
#include <remote/launch.hpp>

#include "wire/cause.hpp"
#include "wire/fields.hpp"
#include "wire/folder_flaw.hpp"

// Requests about jobs, and their replies. Paths are absolute, or relative to the home directory ("~/x", "x").
// Times are milliseconds since the epoch, by the server's clock.

namespace remote::wire {

constexpr std::size_t max_jobs = 100'000;
constexpr std::size_t max_attempts = 1001;
constexpr std::size_t max_waits = 64;
constexpr Limits job_ids = ids(max_jobs);
constexpr Limits moment_limit = in_range(0, 253'402'300'800'000);  // until the year 10000

using Moment = std::chrono::milliseconds;

// The jobs folder in a project.
struct JobsPlace {
  std::string project;
  std::string jobs_folder;  // relative to the project

  static constexpr auto fields() {
    return field_list(field("project", &JobsPlace::project, at_most(4096)),
                      field("jobs_folder", &JobsPlace::jobs_folder, at_most(4096)));
  }
};

// ---- States of jobs

// How a process ended: by exiting, or by a signal.
struct ProcessEnd {
  int code = 0;
  int signal = 0;  // 0: it exited

  static ProcessEnd exited(int code) { return {code, 0}; }
  static ProcessEnd signalled(int signal) { return {0, signal}; }
  bool succeeded() const { return code == 0 && signal == 0; }
  ExitStatus status() const { return signal != 0 ? ExitStatus::signalled(signal) : ExitStatus::exited(code); }
  static constexpr auto fields() {
    return field_list(field("code", &ProcessEnd::code, in_range(0, 255)),
                      field("signal", &ProcessEnd::signal, in_range(0, 64)));
  }
  friend bool operator==(const ProcessEnd&, const ProcessEnd&) = default;
};

struct JobEnd {
  ProcessEnd how;
  std::optional<Moment> at{};
  std::string by{};    // what recorded it: "supervisor", "torchrun", "mpirun", "kill" or "slurm"
  std::string node{};  // for a Slurm rank

  static constexpr auto fields() {
    return field_list(field("how", &JobEnd::how), field("at", &JobEnd::at, moment_limit),
                      field("by", &JobEnd::by, a_word("._-", 64)),
                      field("node", &JobEnd::node, a_word("._-")));
  }
  friend bool operator==(const JobEnd&, const JobEnd&) = default;
};

enum class StopCause {
  user,    // `text`: "ada@laptop", or "" if unknown
  rank,    // rank `number` of the launch failed
  lost,    // the server `text` was lost
  hang,    // the launch hung for `number` seconds
  launch,  // its start was incomplete or interrupted
};

// The user or the event that stopped a job.
struct StoppedBy {
  StopCause cause = StopCause::user;
  int number = 0;
  std::string text{};

  static constexpr auto fields() {
    return field_list(field("cause", &StoppedBy::cause),
                      field("number", &StoppedBy::number, in_range(0, 1 << 30)),
                      field("text", &StoppedBy::text, a_line(1000)));
  }
  friend bool operator==(const StoppedBy&, const StoppedBy&) = default;
};

struct StopRecord {
  int signal = 15;
  StoppedBy by;
  Moment at{};

  static constexpr auto fields() {
    return field_list(field("signal", &StopRecord::signal, in_range(1, 64)), field("by", &StopRecord::by),
                      field("at", &StopRecord::at, moment_limit));
  }
  friend bool operator==(const StopRecord&, const StopRecord&) = default;
};

enum class LifelineState {
  missing,    // the launch would not stop if a rank on another server fails: `reason`
  dead,       // like `missing`, because it has died and could not be restarted: `reason`
  restarted,  // it had died, and was just restarted
};

struct LifelineTrouble {
  LifelineState state = LifelineState::missing;
  std::string reason{};

  static constexpr auto fields() {
    return field_list(field("state", &LifelineTrouble::state),
                      field("reason", &LifelineTrouble::reason, a_line(1000)));
  }
};

// An attempt of a launch with restarts that was followed by another one: see remote::Attempt.
struct AttemptRecord {
  int number = 1;
  Moment began_at{};
  Moment failed_at{};
  Moment next_at{};
  RestartCause cause{};
  std::optional<ProcessEnd> end{};
  std::optional<int> rank{};
  bool left_out = false;
  std::string server{};
  std::vector<std::string> without{};

  static constexpr auto fields() {
    using A = AttemptRecord;
    return field_list(
        field("number", &A::number, in_range(1, 1 << 30)), field("began_at", &A::began_at, moment_limit),
        field("failed_at", &A::failed_at, moment_limit), field("next_at", &A::next_at, moment_limit),
        field("cause", &A::cause), field("end", &A::end), field("rank", &A::rank, in_range(0, 1 << 30)),
        field("left_out", &A::left_out), field("server", &A::server, a_line(256)),
        field("without", &A::without, a_line(4096)));
  }
};

// A hang of the job's launch: see remote::Hung.
struct HangRecord {
  Moment at{};
  std::chrono::seconds stood{};
  std::optional<Moment> moved_at{};

  static constexpr auto fields() {
    return field_list(field("at", &HangRecord::at, moment_limit),
                      field("stood", &HangRecord::stood, in_range(0, 1LL << 40)),
                      field("moved_at", &HangRecord::moved_at, moment_limit));
  }
};

enum class JobPhase {
  none,      // its folder does not exist: it never started and, if claimed, never will
  starting,  // its supervisor has not started yet
  queued,    // it will start later: `reason`
  running,
  ended,     // it has a result
  gone,      // it has no result, and all of its processes have exited
  rebooted,  // like `gone`, but the server has rebooted since
  unknown,   // the server cannot determine it: `reason`
};

struct JobReport {
  std::string id;
  JobPhase phase = JobPhase::none;
  std::string backend = "local";
  std::optional<int> pid{};
  // Why it is queued, unknown or gone; why it ended, if the result does not show that; or a problem of a
  // running job.
  std::string reason{};
  bool supervised = true;  // false: the job is alive, but its supervisor is not
  bool left = false;       // it was stopped and has a result, but its process `pid` is still alive
  std::optional<int>
      leftovers{};      // for a job that ended on its own: how many of its processes are still alive
  bool unseen = false;  // for a finished job: its leftovers are unknown
  std::optional<JobEnd> end{};
  std::optional<Moment> started_at{};
  std::optional<Moment> wrote_at{};   // last write; for a finished job: to stderr
  std::optional<Moment> raised_at{};  // for a failed job that waited in pdb: time of the exception
  bool after_peer = false;            // its last lines on stderr show that another rank was gone
  std::optional<StopRecord> stop{};
  std::optional<LifelineTrouble> lifeline{};
  bool oom = false;                    // the kernel's out-of-memory killer was active while it ran
  FolderFlaw disk = FolderFlaw::none;  // why files could not be written to its folder when it had failed
  // Set once the usage of a finished Slurm job is final. If `usage` is missing, the accounting does not have
  // it.
  bool usage_asked = false;
  std::optional<JobUsage> usage{};
  std::vector<DebuggerWait> waits{};
  std::optional<HangRecord> hung{};
  std::vector<AttemptRecord> attempts{};
  std::optional<NoRestart> no_restart{};
  std::uint64_t out_size = 0;  // bytes in job.out and job.err
  std::uint64_t err_size = 0;
  std::string machine{};  // for a job whose folder is missing: a digest of this machine; "": unknown
  std::optional<std::string> last_line{};  // last line of its output, if requested and not empty

  static constexpr auto fields() {
    using J = JobReport;
    constexpr Limits size = in_range(0, 1LL << 62);
    return field_list(
        field("id", &J::id, an_id()), field("phase", &J::phase),
        field("backend", &J::backend, a_word("", 32)), field("pid", &J::pid, in_range(1, 1 << 30)),
        field("reason", &J::reason, a_line(1000)), field("supervised", &J::supervised),
        field("left", &J::left), field("leftovers", &J::leftovers, in_range(1, 1 << 30)),
        field("unseen", &J::unseen), field("end", &J::end), field("started_at", &J::started_at, moment_limit),
        field("wrote_at", &J::wrote_at, moment_limit), field("raised_at", &J::raised_at, moment_limit),
        field("after_peer", &J::after_peer), field("stop", &J::stop), field("lifeline", &J::lifeline),
        field("oom", &J::oom), field("disk", &J::disk), field("usage_asked", &J::usage_asked),
        field("usage", &J::usage), field("waits", &J::waits, at_most(max_waits)), field("hung", &J::hung),
        field("attempts", &J::attempts, at_most(max_attempts)), field("no_restart", &J::no_restart),
        field("out_size", &J::out_size, size), field("err_size", &J::err_size, size),
        field("machine", &J::machine, a_word("", 64)), field("last_line", &J::last_line, at_most(1000)));
  }
};

struct StateRequest {
  static constexpr std::string_view kind = "state";

  JobsPlace place;
  std::vector<std::string> ids{};
  // Those of `ids` whose starters are dead. If one does not have a folder, the agent creates it with the
  // result "never started", so that a delayed start has no effect.
  std::vector<std::string> claim{};
  // For jobs of one launch that were just started: wait up to 4 s for the state of the launch's lifeline on
  // this server.
  bool await_lifeline = false;
  bool last_lines = false;

  static constexpr auto fields() {
    using R = StateRequest;
    return field_list(field("place", &R::place), field("ids", &R::ids, job_ids),
                      field("claim", &R::claim, job_ids), field("await_lifeline", &R::await_lifeline),
                      field("last_lines", &R::last_lines));
  }
};

// Part of an answer. Each part has different jobs.
struct StateReply {
  static constexpr std::string_view kind = "state";

  Moment now{};  // when the agent started to check
  std::vector<JobReport> jobs{};

  static constexpr auto fields() {
    return field_list(field("now", &StateReply::now, moment_limit),
                      field("jobs", &StateReply::jobs, at_most(max_jobs)));
  }
};

// ---- The ranks of a job with several ranks, as recorded by torchrun, mpirun and Slurm

struct WorkersRequest {
  static constexpr std::string_view kind = "workers";

  JobsPlace place;
  std::string id;
  int lines = 10;  // per rank

  static constexpr auto fields() {
    using R = WorkersRequest;
    return field_list(field("place", &R::place), field("id", &R::id, an_id()),
                      field("lines", &R::lines, in_range(0, 1000)));
  }
};

struct FailedWorker {
  int rank = 0;
  std::optional<Moment> raised_at{};      // time of its uncaught exception
  bool after_peer = false;                // the exception, or its last lines, show that another rank was gone
  std::vector<std::string> last_lines{};  // from the traceback, or else from its stderr; untrusted text
  std::optional<JobEnd> end{};

  static constexpr auto fields() {
    using W = FailedWorker;
    return field_list(field("rank", &W::rank, in_range(0, 1 << 30)),
                      field("raised_at", &W::raised_at, moment_limit), field("after_peer", &W::after_peer),
                      field("last_lines", &W::last_lines, at_most(2048)), field("end", &W::end));
  }
};

struct WorkersReply {
  static constexpr std::string_view kind = "workers";

  Moment now{};
  std::vector<FailedWorker> workers{};  // sorted by rank

  static constexpr auto fields() {
    return field_list(field("now", &WorkersReply::now, moment_limit),
                      field("workers", &WorkersReply::workers, at_most(max_jobs)));
  }
};

// The last lines of files in jobs' folders, one file after the other.
struct LinesRequest {
  static constexpr std::string_view kind = "lines";

  JobsPlace place;
  std::vector<std::string> ids{};
  std::vector<std::string> files{};  // in each job's folder: "job.err", "ranks/0.err"
  int count = 10;                    // per file

  static constexpr auto fields() {
    using R = LinesRequest;
    return field_list(field("place", &R::place), field("ids", &R::ids, job_ids),
                      field("files", &R::files, a_word("._-/", 64)),
                      field("count", &R::count, in_range(0, 10'000)));
  }
};

struct LinesReply {
  static constexpr std::string_view kind = "lines";

  std::vector<std::string> lines{};  // untrusted text; each at most 2,000 bytes

  static constexpr auto fields() { return field_list(field("lines", &LinesReply::lines, at_most(65'536))); }
};

// ---- Stopping and removing jobs

struct StopRequest {
  static constexpr std::string_view kind = "stop";

  JobsPlace place;
  std::vector<std::string> ids{};
  std::vector<std::string>
      claim{};  // those of `ids` that may not have started; even their project may be missing
  std::vector<std::string> dead{};  // StateRequest::claim for the reports
  int signal = 15;
  int grace_s = 0;
  StoppedBy by;

  static constexpr auto fields() {
    using R = StopRequest;
    return field_list(field("place", &R::place), field("ids", &R::ids, job_ids),
                      field("claim", &R::claim, job_ids), field("dead", &R::dead, job_ids),
                      field("signal", &R::signal, in_range(1, 64)),
                      field("grace_s", &R::grace_s, in_range(0, 1'000'000)), field("by", &R::by));
  }
};

// A leftover of a job.
struct Survivor {
  std::optional<int> pid{};
  std::string name{};             // of the process; or "container remote-0123…" or "Slurm job 12"
  std::string user{};             // "?" if unknown
  std::string state{};            // as in /proc/PID/stat: "D"
  bool holds_gpu_memory = false;  // the process is gone, but its GPU memory is not released

  static constexpr auto fields() {
    using S = Survivor;
    return field_list(field("pid", &S::pid, in_range(1, 1 << 30)), field("name", &S::name, a_line()),
                      field("user", &S::user, a_line(64)), field("state", &S::state, a_word("?", 1)),
                      field("holds_gpu_memory", &S::holds_gpu_memory));
  }
};

struct StopResult {
  std::string id;
  KillResult::Entry::Outcome outcome = KillResult::Entry::Outcome::none;
  int signalled = 0;     // number of processes that were signaled
  std::string reason{};  // for `refused`
  std::vector<Survivor> survivors{};
  // Processes that may belong to the job and were not stopped: their files are not readable, but they were
  // started while the job was running, and have no parent.
  std::vector<Survivor> suspects{};

  static constexpr auto fields() {
    using R = StopResult;
    return field_list(
        field("id", &R::id, an_id()), field("outcome", &R::outcome),
        field("signalled", &R::signalled, in_range(0, 1 << 30)), field("reason", &R::reason, a_line(1000)),
        field("survivors", &R::survivors, at_most(1000)), field("suspects", &R::suspects, at_most(1000)));
  }
};

// Part of an answer. Each part has different results and jobs.
struct StopReply {
  static constexpr std::string_view kind = "stop";

  Moment now{};  // before anything was stopped
  std::vector<StopResult> results{};
  std::vector<JobReport> jobs{};  // after the stop

  static constexpr auto fields() {
    return field_list(field("now", &StopReply::now, moment_limit),
                      field("results", &StopReply::results, at_most(max_jobs)),
                      field("jobs", &StopReply::jobs, at_most(max_jobs)));
  }
};

struct CleanRequest {
  static constexpr std::string_view kind = "clean";

  JobsPlace place;
  std::vector<std::string> ids{};

  static constexpr auto fields() {
    return field_list(field("place", &CleanRequest::place), field("ids", &CleanRequest::ids, job_ids));
  }
};

enum class CleanOutcome {
  removed,
  none,     // its folder does not exist
  running,  // not removed, because part of it is alive or may still start: `reason`
  failed,   // the folder cannot be removed: `reason`
};

struct CleanedJob {
  std::string id;
  CleanOutcome outcome = CleanOutcome::failed;
  std::string reason{};

  static constexpr auto fields() {
    using C = CleanedJob;
    return field_list(field("id", &C::id, an_id()), field("outcome", &C::outcome),
                      field("reason", &C::reason, a_line(1000)));
  }
};

struct CleanReply {
  static constexpr std::string_view kind = "clean";

  std::vector<CleanedJob> jobs{};

  static constexpr auto fields() { return field_list(field("jobs", &CleanReply::jobs, at_most(max_jobs))); }
};

// ---- Following

// The answer consists of FollowBegins, data and FollowEnds. The first byte of each data frame selects the
// output: 1 for job.out, 2 for job.err. The client can stop it early with `abort`.
struct FollowRequest {
  static constexpr std::string_view kind = "follow";

  JobsPlace place;
  std::string id;
  std::uint64_t out_offset = 0;  // start at these bytes of job.out and job.err
  std::uint64_t err_offset = 0;
  std::optional<int> lines{};                   // start with the last lines instead
  std::optional<std::chrono::seconds> since{};  // start with output of this age instead
  bool follow = true;                           // false: stop at the current end of the output
  bool wait_only = false;                       // send no output, only wait for the job's end
  std::optional<int> rank{};                    // for a Slurm launch: use this rank's own files

  static constexpr auto fields() {
    using R = FollowRequest;
    constexpr Limits offset = in_range(0, 1LL << 62);
    return field_list(
        field("place", &R::place), field("id", &R::id, an_id()), field("out_offset", &R::out_offset, offset),
        field("err_offset", &R::err_offset, offset), field("lines", &R::lines, in_range(0, 1 << 30)),
        field("since", &R::since, in_range(0, 1LL << 40)), field("follow", &R::follow),
        field("wait_only", &R::wait_only), field("rank", &R::rank, in_range(0, 1 << 30)));
  }
};

struct FollowBegins {
  static constexpr std::string_view kind = "follow_begins";

  Moment now{};
  std::uint64_t out_offset = 0;  // offset of the first byte sent
  std::uint64_t err_offset = 0;

  static constexpr auto fields() {
    constexpr Limits offset = in_range(0, 1LL << 62);
    return field_list(field("now", &FollowBegins::now, moment_limit),
                      field("out_offset", &FollowBegins::out_offset, offset),
                      field("err_offset", &FollowBegins::err_offset, offset));
  }
};

// Follows all output that the job had written when it ended or, without `follow`, at the time of the request.
struct FollowEnds {
  static constexpr std::string_view kind = "follow_ends";

  Moment now{};
  JobReport job;

  static constexpr auto fields() {
    return field_list(field("now", &FollowEnds::now, moment_limit), field("job", &FollowEnds::job));
  }
};

// ---- Structs and enums of the public headers

template <>
struct Fields<JobUsage> {
  static constexpr auto fields() {
    constexpr Limits number = in_range(0, (1LL << 31) - 1);
    return field_list(field("cpus", &JobUsage::cpus, number),
                      field("cpu_percent", &JobUsage::cpu_percent, number),
                      field("memory_mib", &JobUsage::memory_mib, number),
                      field("requested_mib", &JobUsage::requested_mib, number));
  }
};

template <>
struct Fields<DebuggerWait> {
  static constexpr auto fields() {
    using W = DebuggerWait;
    return field_list(field("id", &W::id, a_word(".", 64)), field("rank", &W::rank, in_range(0, 1 << 30)),
                      field("file", &W::file, a_line(4096)), field("line", &W::line, in_range(0, 1 << 30)),
                      field("error", &W::error, a_word("._-?", 1000)));
  }
};

}  // namespace remote::wire

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::StopCause> = {
    std::string_view("user"), std::string_view("rank"), std::string_view("lost"), std::string_view("hang"),
    std::string_view("launch")};
template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::LifelineState> = {
    std::string_view("missing"), std::string_view("dead"), std::string_view("restarted")};
template <>
inline constexpr std::array remote::wire::enum_names<remote::RestartCause> = {
    std::string_view("exit"), std::string_view("signal"), std::string_view("oom"),
    std::string_view("lost"), std::string_view("hang"),   std::string_view("lifeline")};
template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::JobPhase> = {
    std::string_view("none"),     std::string_view("starting"), std::string_view("queued"),
    std::string_view("running"),  std::string_view("ended"),    std::string_view("gone"),
    std::string_view("rebooted"), std::string_view("unknown")};
template <>
inline constexpr std::array remote::wire::enum_names<remote::KillResult::Entry::Outcome> = {
    std::string_view("killed"), std::string_view("ended"), std::string_view("none"),
    std::string_view("survivors"), std::string_view("refused")};
template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::CleanOutcome> = {
    std::string_view("removed"), std::string_view("none"), std::string_view("running"),
    std::string_view("failed")};
