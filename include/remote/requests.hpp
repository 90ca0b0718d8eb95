#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/error.hpp>
#include <remote/events.hpp>
#include <remote/exit_status.hpp>
#include <remote/instant.hpp>
#include <remote/job.hpp>
#include <remote/launch.hpp>
#include <remote/terminal.hpp>
#include <remote/top.hpp>

// Requests and results of the calls of a Project (remote/project.hpp) that have no header of their own.

namespace remote {

// Receives output of commands as it is written: the index of the server in the call's list, and bytes in
// chunks of any size. While it runs, further output waits on the server.
using OnOutput = std::function<void(std::size_t, OutputStream, std::string_view)>;

struct ServerRun {
  std::string server;
  std::optional<ExitStatus> status;  // nullopt: see `error`
  std::optional<Error> error;
};
struct RunRequest {
  std::string command;  // a line for the server's shell, run in the project's folder and environment
  std::vector<std::string> servers{};  // names or globs; none: all
  Env env{};
  OnOutput on_output{};  // an Error that it throws ends that server's part and becomes its error
  std::function<void(std::size_t, const ServerRun&)> on_ended{};  // called after all of its output
  // Gives the command a terminal; its output is then a single stream, `out`. Only with one server: otherwise
  // Error (usage). The command gets SIGHUP when this side disconnects.
  std::optional<TerminalSide> terminal{};
};

struct ShellRequest {
  std::string server;  // a name, or a glob that matches one server
  Env env{};
  TerminalSide terminal{};
  std::function<void(std::string_view)> on_output{};
};

// How a call of attach() ended: goes_on: the rank continues; left: the user detached and it still waits;
// taken: another call took over; ended: its process has ended; gone: it was no longer waiting.
enum class Attached { goes_on, left, taken, ended, gone };
struct AttachRequest {
  Job job;
  std::string wait;  // DebuggerWait::id of an entry in Job::waits
  // The type is ignored, because the output moves the cursor only by \r and \b. If `input` is not a terminal,
  // its lines are debugger commands; at its end the rank is left waiting.
  TerminalSide terminal{};
  std::function<void(std::string_view)> on_output{};  // untrusted text
};

struct PrepareRequest {
  std::vector<std::string> servers{};
  bool setup = true;           // create the Python environment
  bool sync = true;            // send the project
  bool packages = true;        // install the packages of requirements.txt, Pipfile or pyproject.toml
  bool force = false;          // run setup and packages even if they are already done
  bool dry_run = false;        // of the sync: change nothing
  bool remove = false;         // delete files there that this machine sent and that no longer exist here
  bool overwrite = false;      // also send files that are newer on the server
  bool verify = false;         // compare all file contents afterward
  bool through_peers = false;  // send to one server, and let the servers copy to each other
  std::uint64_t bytes_per_second = 0;  // per server; 0: unlimited
};
struct PrepareResult {
  std::string server;
  PrepareReport report;
  std::optional<Error> error;
  std::string log;  // for a failed command: the folder with its output
};

// What the first transfer of the project would send.
struct FirstSync {
  struct Part {
    std::string name;  // a top-level entry of the project; a folder ends with a slash
    std::uint64_t bytes = 0;
    std::size_t files = 0;
  };
  std::vector<std::string> servers;  // servers never sent to; if none, the rest is empty
  std::uint64_t bytes = 0;
  std::size_t files = 0;
  std::vector<Part> parts;  // largest first
};

struct JobRequest {
  std::string command;
  std::string server;  // a name, or a glob that matches one server
  Env env{};
  std::optional<std::string> image{};  // as in LaunchRequest::image
  std::vector<std::string> tags{};
  std::optional<JobId> id{};  // default: random. If a job with this id exists, Error.
  // Load a sitecustomize into its Python processes (docs/protocol.md, "Stacks"): stacks() can read their
  // stacks without py-spy, and a torch that was built without libuv does not try to use it.
  bool enable_stacks = false;
  // A missing script of the command is an Error (usage); a missing project or Python environment is an Error.
  bool check = true;
  // Only for a Slurm login node, otherwise Error (usage). Slurm may requeue it after a node failure or
  // preemption.
  bool requeue = false;
  // Only for a Slurm login node: one job per number, as a Slurm array. Each gets its number in
  // SLURM_ARRAY_TASK_ID and the tag "array-N". Empty: no array.
  std::vector<int> array{};
  std::optional<int> array_limit{};  // maximum number of array jobs that run at once
  std::vector<Job> after{};          // it starts after these jobs on the same server have succeeded
  LeaseRequest lease{};              // resources on its server that no other job may use
  std::optional<Cancel> cancel{};    // cancels only this call
};

struct StartResult {
  Job job;                     // with its key, even if it did not start
  std::vector<Job> more{};     // the other jobs of an array
  std::optional<Error> error;  // it did not start, or it is unknown whether it did
};

struct JobsRequest {
  JobSelection selection{};
  bool some = false;             // if no job matches, Error (usage)
  bool unfinished_only = false;  // as far as known here, before asking the servers
  bool ask = true;               // ask the servers of unfinished jobs; otherwise use only the records here
  // Without names and tags: of the jobs that have ended, as far as known here, only these.
  std::optional<EndedLately> lately{};
  // Timeout for connecting to a server, and for each of its answers after that.
  std::chrono::milliseconds patience{3000};
};

struct ProjectStatus {
  std::vector<Job> unfinished;  // by key; hidden jobs are not included anywhere here
  std::vector<Job> ended;       // since the last status_was_told(); the first time: in the last 24 hours
  std::vector<Job> newest;      // the most recently started job, with all ranks of its launch; may be empty
  bool any_job = false;
  int highest_key = 0;              // of all these jobs
  bool sent = false;                // the project was sent from here to at least one server
  std::vector<std::string> gone{};  // servers where the last launch or job found none of the sent files
  int servers = 0;                  // number of servers in configs.yaml
};

// Output of a job as it is written: chunks of any size, each from only one rank. While the callback runs,
// further output waits on the server.
struct JobOutput {
  std::size_t job = 0;        // index in the given jobs
  std::optional<int> rank{};  // the rank that wrote it; nullopt: the process that runs the ranks (torchrun)
  OutputStream stream = OutputStream::out;
  std::string_view text{};
  // With FollowRequest::fold, for a line of a rank: all ranks that wrote the same line, in order; `job` and
  // `rank` are those of the first.
  std::span<const int> ranks{};
};

struct FollowRequest {
  std::optional<int> lines{};  // start with the last lines; nullopt: from the first byte
  // Without `lines`: start with output that is at most this old, by the clock of each server. Accurate to
  // about 15 s, and rather too much than too little; for a job without a lifeline (docs/protocol.md) it only
  // decides whether the output has grown since.
  std::optional<std::chrono::seconds> since{};
  bool follow = true;            // false: stop at the end of the existing output
  bool first_rank_only = false;  // pass on only the output of rank 0; still wait for the others
  // Pass on only the output of these ranks and, for jobs that run several ranks (Job::ranks), the output that
  // belongs to no rank; still wait for the others. Empty: all ranks. With first_rank_only: rank 0.
  std::vector<int> ranks{};
  // Pass on only lines that match this POSIX extended regular expression. Error (usage) if it is invalid.
  std::string grep{};
  // For one launch: pass on a line once if several ranks write it within 150 ms or, with `follow` false, at
  // any time. Keeps the order of lines within each rank. Lines that only single ranks have written so far,
  // ignoring numbers, are not delayed.
  bool fold = false;
  // For a launch under Slurm, which is one job with a separate output per rank: pass on all of them.
  bool each_rank = false;
  bool silent = false;               // pass on no output: only wait for the jobs to end
  bool judge = false;                // if the jobs are one launch, find out which one failed first
  std::chrono::seconds patience{0};  // how long to retry a server that was never reached
  // If the jobs are one launch: a server that does not answer for this long is given up (FollowResult::gone),
  // once all other ranks have ended since then or some were stopped because it was lost.
  std::chrono::seconds lost_after{60};
  // Stop the ranks of this launch that are still running this long after one of them failed. nullopt: never.
  std::optional<std::chrono::seconds> end_others{};
  std::function<void(const JobOutput&)> on_output{};  // with grep or fold: whole lines
  // A server was reached, or was given up. May be called again for the same server.
  std::function<void(const std::string& server)> on_settled{};
  std::function<void(std::size_t, const Job&)> on_ended{};  // called after all of its output
  std::optional<Cancel> cancel{};                           // cancels only this call
};
struct FollowResult {
  std::vector<Job> jobs;      // in their current state
  std::vector<Error> errors;  // failures to follow a job to its end: one per job or server
  std::vector<std::string>
      gone;  // servers that were given up; their jobs that are not known to have ended are unknown
  std::optional<Verdict> verdict;  // with FollowRequest::judge, once all have ended or are given up
};

struct PullRequest {
  Job job;
  // Relative to the project there; FOLDER/ means its contents. A path that does not exist and contains * ? or
  // [ is a pattern for all matching files.
  std::vector<std::string> paths;
  std::filesystem::path to = ".";
  bool force = false;  // also overwrite files that are newer here
  std::function<void(const TransferProgress&)> on_progress{};
};

struct ResultsRequest {
  std::string launch = "last";  // as named in History
  std::function<void(const TransferProgress&)> on_progress{};
};
// The files in the `outputs` of configs.yaml that a launch wrote, copied to results/KEY: files of its first
// server at the top, those of every other server in a folder named after that server.
struct Results {
  std::filesystem::path folder;
  std::vector<std::string> files;     // copied by this call, relative to `folder`; untrusted text
  std::vector<std::string> newer;     // not overwritten, because they are newer here
  std::vector<std::string> waiting;   // parts of incomplete checkpoints; not copied
  std::vector<std::string> warnings;  // untrusted text
  std::uint64_t bytes = 0;
  std::size_t found = 0;      // number of files that the launch wrote, without incomplete checkpoints
  std::vector<Error> errors;  // one per server; files of the other servers were copied
};

// The result of a test of `notify:`.
struct NotifyTrial {
  std::string server;
  bool sent = false;
  std::string answer;  // the response, or why the notification failed; untrusted text
};

struct AuthorizeRequest {
  std::vector<std::string> servers{};
  std::filesystem::path key{};  // default: the server's private_key or IdentityFile, or ~/.ssh/id_*
  bool generate = false;        // generate the key if it does not exist
};
struct AuthorizeResult {
  std::string server;
  std::filesystem::path key;  // the file of the private key
  bool added = false;         // false: it was already there
  std::string open_folder;  // a folder that others can write to, so that a strict sshd ignores the key; or ""
  bool configured = true;   // configs.yaml or ~/.ssh select this key for the server
  std::optional<Error> error;
};

struct UninstallRequest {
  std::vector<std::string> servers{};
  bool dry_run = false;  // remove nothing
};
struct UninstallResult {
  // A job that is running on the server. In that case nothing is removed.
  struct RunningJob {
    std::optional<JobId> id;
    std::optional<int> pid;
    std::string project;  // its folder on the server, or "" if unknown; untrusted text
  };
  struct Leftover {
    enum class Reason {
      failed,      // could not be removed
      link,        // a symbolic link; not followed
      foreign,     // belongs to another user
      unknown,     // not a file of remote
      recent,      // another command may be installing it
      unfinished,  // jobs without a result, possibly on another machine, may use it
      unmoved,     // contains files of frozen launches that could not be moved to the project
      lease,       // a lease that is in use or ended just now
      results,     // results of jobs
    };
    Reason reason = Reason::failed;
    std::string path;  // untrusted text
    // Whether uninstall() should have removed it. Leases remove themselves, and results belong to the user.
    bool counts() const { return reason != Reason::lease && reason != Reason::results; }
  };
  std::string server;
  std::vector<RunningJob> running{};
  std::vector<std::string> removed{};  // with UninstallRequest::dry_run: would be removed; untrusted text
  std::vector<Leftover> left{};
  std::optional<Error> error{};
};

struct LoginRequest {
  std::vector<std::string> servers{};
  std::chrono::seconds open_for = std::chrono::hours(8);  // time until it closes after the last command
  // Let ssh prompt on the terminal of this process for codes, PINs or passphrases, for one server at a time.
  // Without it, a server that prompts is an error.
  bool on_terminal = false;
  // Called just before the prompts, with the host that they are for: the server's name, or "jump host NAME".
  std::function<void(const std::string&)> on_questions{};
};
struct LoginResult {
  std::string server;
  bool was_open = false;  // it was already open, and works
  Instant until;          // when it will close, unless a command uses it before
  std::optional<Error> error;
};

// How a server is reached: each setting with its source ("configs.yaml:12", "default"). Secrets are masked.
struct ServerSetting {
  std::string name;
  std::string value;
  std::string from;
  std::string problem;  // the problem with it, or ""
};
struct ServerInfo {
  std::string name;
  std::string hostname;
  std::vector<ServerSetting> settings;
  std::optional<Error> error;
  bool logged_in = false;  // an OpenSSH master is open for it; commands use that
};

struct ServerState {
  std::string server;
  std::optional<int> gpus;           // number of GPUs; nullopt: not reached
  std::optional<int> expected_gpus;  // as in configs.yaml; nullopt: not set
  std::size_t jobs = 0;              // unfinished jobs of this project, as far as known
  std::optional<Error> error;        // why it was not reached
  std::optional<ServerLoad> load{};  // nullopt: not reached
  GpuFacts gpu_facts{};              // brief, as in ServerSample::gpus
};

}  // namespace remote
