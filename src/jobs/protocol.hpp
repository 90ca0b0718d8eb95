#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <remote/exit_status.hpp>
#include <remote/job.hpp>
#include <remote/launch.hpp>

#include "servers/action.hpp"
#include "servers/run_command.hpp"

// What is said between this program and the scripts of src/server on a server about jobs: docs/protocol.md.
// A job with a backend that this version does not have is answered with Phase::unknown or Outcome::refused.

namespace remote::jobs {

// The backends (docs/protocol.md) that this side names; the program on the server has more.
inline constexpr std::string_view local_backend = "local";
inline constexpr std::string_view slurm_backend = "slurm";

// ---- Starting

// One process to start as a job.
struct StartRequest {
  JobId id;
  servers::ProcessSpec process;
  std::string backend{local_backend};
  // More files of the job's folder, by name: `init_file` (servers/init_file.hpp), where its launch has a
  // shared file; `tree`, the digest of a frozen launch's tree; for `slurm`: its batch script and what goes
  // with it.
  std::vector<std::pair<std::string, std::string>> files{};
};

// The file of a job whose launch may begin anew: docs/protocol.md.
inline constexpr std::string_view again_file = "again";
// The file of such a job that has no ranks until its server replaces another one.
inline constexpr std::string_view spare_file = "spare";

// The variable that every process of a job has in its environment; its value is the job's id.
inline constexpr std::string_view cookie_name = "REMOTE_JOB_ID";

// The program that runs a job under Slurm, for its folder: src/server/slurm_job.sh.
std::string slurm_job_program();

// The texts of these jobs' job.sh, which all begin with `head` and end with `tail`.
struct JobTexts {
  std::string head;
  std::vector<std::string> own;
  std::string tail;
};
// `leased`: each finds the file `devices` in its folder, with what is leased for it.
JobTexts job_texts(const RemoteFolder& folder, const std::vector<StartRequest>& requests, bool leased);

struct StartReply {
  enum class Outcome { started, queued, exists, failed };
  JobId id;
  Outcome outcome = Outcome::failed;
  std::optional<int> pid;
  std::string reason;  // for queued and failed
};

struct StartAnswer {
  std::vector<StartReply> jobs;
  void take(servers::AnswerLine& line);
};

// Starts all of a server's ranks in one exec. Starting an id that exists starts nothing. Throws Error (usage)
// for a variable's name that a shell cannot have. With a `lifeline` (see lifeline_request()), the launch's
// lifeline starts beside the jobs, with the python3 of the PATH, or else with that of the environment that
// the sh text `activate` enters. `lease`: what all of them lease together (servers::lease_words()); without
// it, none of them starts.
servers::Action<StartAnswer> start_action(const RemoteFolder& folder,
                                          const std::vector<StartRequest>& requests,
                                          const std::string& lifeline = "", const std::string& activate = "",
                                          const std::vector<std::string>& lease = {});

// ---- State

// How a process ended: the record KIND CODE MS BY of docs/protocol.md.
struct End {
  ExitStatus status = ExitStatus::exited(0);
  std::optional<ExactInstant> at{};  // the server's clock
  // Which supervisor wrote it: "supervisor", "torchrun"; "-": one of an older build, whose `at` is in whole
  // seconds.
  std::string by{};
  std::string node{};  // that of a rank of Slurm
};

struct StatusReply {
  // none: no such folder (never started, and now never will: see `claim`); starting: made, supervisor not yet
  // there; queued: will start later, see `reason`; running; ended: there is a result; gone: no result and
  // nothing lives; rebooted: as gone, and the boot id differs; unknown: the server cannot tell, see `reason`.
  enum class Phase { none, starting, queued, running, ended, gone, rebooted, unknown };
  JobId id;
  Phase phase = Phase::none;
  std::string backend{local_backend};
  std::optional<int> pid;
  // Why it is queued, unknown or gone, what ended it beside its result, or what is odd about a running one;
  // may be "".
  std::string reason;
  bool supervised = true;        // false: the job lives, its supervisor does not
  bool left = false;             // it was told to end and has a result, but its process `pid` lives on
  std::optional<int> leftovers;  // of an ended one that nobody told to end: how many of its processes live on
  bool unseen = false;           // of an ended one: what it has left behind could not be looked for
  std::optional<End> end;
  std::optional<Instant> started_at;  // the server's clock
  // The same clock: when it last wrote, if it ever did; of an ended job, to its stderr. Not
  // every server tells.
  std::optional<ExactInstant> wrote_at;
  std::optional<ExactInstant> raised_at;  // of one that failed: the exception for which it waited in pdb
  bool after_peer = false;                // its last words on stderr say that another rank was gone
  std::optional<int> stop_signal;         // what it was told to stop by, if it was
  JobReason stop_by;        // who told it: after_rank, after_loss, after_hang, by_launch or by_user
  ExactInstant stopped_at;  // when
  JobReason lifeline;       // no_lifeline, lifeline_dead or lifeline_restarted; none: there is nothing to say
  bool oom = false;         // the kernel's OOM killer struck while it ran
  std::optional<JobUsage> usage;
  std::vector<DebuggerWait> waits;
  std::optional<Hung> hung;       // by the server's clock
  std::vector<Attempt> attempts;  // the server's clock
  std::uint64_t out_size = 0;     // bytes in job.out and job.err
  std::uint64_t err_size = 0;

  std::optional<ExitStatus> result() const { return end ? std::optional(end->status) : std::nullopt; }
};

struct StatusAnswer {
  ExactInstant server_now;  // the server's clock when it answered
  bool exact = false;       // to the millisecond; else the server told whole seconds
  ExactInstant told_at;     // the laptop's clock when that came
  std::vector<StatusReply> jobs;

  void take(servers::AnswerLine& line);
  void check() const;
  // Whether its clock has come: without it nothing of the answer can be used.
  bool has_now() const { return has_now_; }

 private:
  bool has_now_ = false;
};

// What the server has just done with the jobs that are asked about. After a start (then all ids belong to one
// launch), the answer waits until the launch's lifeline on that server has told how it is, 4 s at most.
enum class StatusAfter { nothing, start };

// Asks about jobs. For ids in `claim` whose folder is missing, the folder is made with the result "never
// started", so that a start that is still on its way finds it and starts nothing.
servers::Action<StatusAnswer> status_action(const RemoteFolder& folder, const std::vector<JobId>& ids,
                                            const std::vector<JobId>& claim,
                                            StatusAfter after = StatusAfter::nothing);

// ---- What torchrun's workers said of their ends

// A worker that failed, by its rank in the launch. Times are the server's.
struct WorkerReply {
  std::optional<ExactInstant> raised_at;  // when it raised an exception that nobody caught
  bool after_peer = false;                // that, or what it wrote last, says that another rank was gone
  std::vector<std::string> last_lines;    // of the traceback, else of its stderr; foreign text
  std::optional<End> end;
};

struct WorkersAnswer {
  StatusAnswer clock;  // without jobs
  std::map<int, WorkerReply> workers;

  void take(servers::AnswerLine& line);
  void check() const { clock.check(); }
};

// Asks about the failed workers of a job that is an agent of torchrun; of any other job there are none.
servers::Action<WorkersAnswer> workers_action(const RemoteFolder& folder, const JobId& id, int lines);

// What takes a terminal (servers::run_on_terminal) to a debugger that waits. `activate` as in
// stacks_action().
std::string attach_script(const RemoteFolder& folder, const JobId& id, const std::string& wait,
                          const std::string& activate);

// ---- Ending, and removing

struct KillReply {
  using Outcome = KillResult::Entry::Outcome;
  JobId id;
  Outcome outcome = Outcome::none;
  int signalled = 0;                   // how many processes got a signal
  std::string reason;                  // for refused
  std::vector<std::string> survivors;  // "pid 4121 (python3, user ada, state D)"
  std::vector<std::string> suspects;   // the same, and why: see KillResult
};

struct KillAnswer {
  std::vector<KillReply> jobs;
  StatusAnswer status;  // how they are now; its clock was read before anything was ended

  void take(servers::AnswerLine& line);
  void check() const { status.check(); }
};

// How jobs are to be ended.
struct KillOrder {
  int signal = 15;
  int grace_s = 0;
  std::string by{};  // by_word()
};

// Ends jobs: stop file, `signal` and CONT to all their processes, up to `grace_s` seconds, KILL, and a last
// look. All jobs end side by side, within grace_s + 2 seconds. It is for ending jobs only: KILL follows also
// when a job handles the signal and goes on. A job that had ended keeps its result and is `ended`; what it
// left behind is ended too (then signalled > 0). An id that was not yet started (`none`) will never start;
// where even the project's folder is missing, that is made sure of for the ids in `claim`, and the others are
// `refused`. How the jobs are then comes in the same answer: as from status_action(), which
// gets the ids in `dead` as its claim.
servers::Action<KillAnswer> kill_action(const RemoteFolder& folder, const std::vector<JobId>& ids,
                                        const KillOrder& order, const std::vector<JobId>& claim = {},
                                        const std::vector<JobId>& dead = {});

struct CleanReply {
  // removed: the folder is gone; none: there was none; running: left alone, because something of it lives or
  // may start yet; failed: the folder cannot be removed
  enum class Outcome { removed, none, running, failed };
  JobId id;
  Outcome outcome = Outcome::failed;
  std::string reason;  // for running and failed
  bool gone() const { return outcome == Outcome::removed || outcome == Outcome::none; }
};

struct CleanAnswer {
  std::vector<CleanReply> jobs;
  void take(servers::AnswerLine& line);
};

// Removes the folders of ended jobs on one server. The server looks itself whether each has really ended.
servers::Action<CleanAnswer> clean_action(const RemoteFolder& folder, const std::vector<JobId>& ids);

// ---- Following

// Follows one job: job.out on stdout and job.err on stderr of the channel, from the byte offsets given, until
// the job has ended or stdin comes to its end (so keep it open while following). The first stdout line that
// begins with "@remote1 " is "@remote1 follow OUT ERR": the offsets at which the streams begin (they differ
// from those asked for when `lines` or `since` chose them). Lines before it are the login shell's; not one
// byte is added after it.
struct FollowRequest {
  JobId id;
  std::uint64_t out_offset = 0;
  std::uint64_t err_offset = 0;
  std::optional<int> lines;   // begin with the last `lines` lines instead
  bool follow = true;         // false: stop at the end of what is there
  bool wait_only = false;     // send nothing, only end with the job
  std::optional<int> rank{};  // of a launch under Slurm: this rank's own files
  std::optional<std::chrono::seconds>
      since{};  // begin with what was written so long ago, by the server's clock
};
std::string follow_script(const RemoteFolder& folder, const FollowRequest& request);
// The offsets of that line (without its newline); nullopt for a line of the login shell. Throws Error for
// "@remote1 error …": the server has no such job, or it was never started.
std::optional<std::pair<std::uint64_t, std::uint64_t>> parse_follow(std::string_view line);

// ---- What these and other actions on jobs share

// What an action's request begins with: $project, $jobs, and the action's file.
servers::Script job_script(const RemoteFolder& folder, std::string_view file);

// Adds FUNCTION ID for each of the jobs.
void call_each(servers::Script& script, std::string_view function, const std::vector<JobId>& ids);
// The same with a second word: 1 for those in `claim`, else 0.
void call_each(servers::Script& script, std::string_view function, const std::vector<JobId>& ids,
               const std::vector<JobId>& claim);

// A text as one word of a line: its odd bytes as %XX; "-" when it is empty.
std::string percent_encode(std::string_view text);

// Who ended a job, as one word: `rank:3`, `lost:SERVER`, `launch`, or `user:NAME`.
std::string by_word(const JobReason& by);
// The same of such a word. Earlier builds wrote a text, in which the lifeline's words stood for themselves.
// nullopt: a %XX is wrong.
std::optional<JobReason> parse_by(std::string_view word);

// A text whose blanks the script has made '+'.
std::string with_blanks(std::string_view text);
// The next word of a line, which must be the id of a job.
JobId id_word(servers::AnswerLine& line);
std::vector<std::string> texts_of(const std::vector<JobId>& ids);

// What the server says of this job; nullptr when it does not name it.
template <typename Reply>
const Reply* reply_about(const JobId& id, const std::vector<Reply>& replies) {
  const auto found = std::ranges::find(replies, id, &Reply::id);
  return found == replies.end() ? nullptr : &*found;
}

}  // namespace remote::jobs
