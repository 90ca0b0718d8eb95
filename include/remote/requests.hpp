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

// What the calls of a Project (remote/project.hpp) are given and return, as far as no other header has it.

namespace remote {

// Output of commands as it comes: the index of the server in the list that the call is about, and bytes in
// pieces of any size. While it takes its time, output waits on the server.
using OnOutput = std::function<void(std::size_t, OutputStream, std::string_view)>;

struct ServerRun {
  std::string server;
  std::optional<ExitStatus> status;  // nullopt: see error
  std::optional<Error> error;
};
struct RunRequest {
  std::string command;  // a line for the server's shell, run in the project's folder and environment
  std::vector<std::string> servers{};  // names or globs; none: all
  Env env{};
  OnOutput on_output{};  // an Error that it throws ends that server's part, as its error
  std::function<void(std::size_t, const ServerRun&)> on_ended{};  // all of its output was handed over before
  // Gives the command a terminal; its output is then one stream, `out`. Goes with one server only: else Error
  // (usage). The command ends by SIGHUP when this side goes away.
  std::optional<TerminalSide> terminal{};
};

struct ShellRequest {
  std::string server;  // a name, or a glob that names one server
  Env env{};
  TerminalSide terminal{};
  std::function<void(std::string_view)> on_output{};
};

// How a call of attach() ended: the rank goes on; it still waits, as the user has left (`left`), or another
// call has taken its place (`taken`); its process has ended meanwhile; it did not wait any more.
enum class Attached { goes_on, left, taken, ended, gone };
struct AttachRequest {
  Job job;
  std::string wait;  // DebuggerWait::id of one of Job::waits
  // Its type is not used: the output moves the cursor by \r and \b alone. If `input` is not a
  // terminal, its lines are the debugger's commands, and its end leaves the rank waiting.
  TerminalSide terminal{};
  std::function<void(std::string_view)> on_output{};  // foreign text
};

struct PrepareRequest {
  std::vector<std::string> servers{};
  bool setup = true;                   // make the Python environment
  bool sync = true;                    // send the project
  bool packages = true;                // install what requirements.txt, Pipfile or pyproject.toml ask for
  bool force = false;                  // do setup and packages although they are done
  bool dry_run = false;                // of the sync: change nothing
  bool remove = false;                 // remove there what this machine sent and what is gone here
  bool overwrite = false;              // also send files that are newer on the server
  bool verify = false;                 // compare all contents afterwards
  bool through_peers = false;          // send to one server, and let the servers bring it to each other
  std::uint64_t bytes_per_second = 0;  // to each server; 0: unlimited
};
struct PrepareResult {
  std::string server;
  PrepareReport report;
  std::optional<Error> error;
  std::string log;  // of a failed command: the folder with its output
};

// What the first transfer of the project is made of.
struct FirstSync {
  struct Part {
    std::string name;  // at the top of the project; a folder ends with a slash
    std::uint64_t bytes = 0;
    std::size_t files = 0;
  };
  std::vector<std::string> servers;  // to which this machine has sent nothing yet; none: the rest is empty
  std::uint64_t bytes = 0;
  std::size_t files = 0;
  std::vector<Part> parts;  // the largest first
};

struct JobRequest {
  std::string command;
  std::string server;  // a name, or a glob that names one server
  Env env{};
  std::optional<std::string> image{};  // as LaunchRequest::image
  std::vector<std::string> tags{};
  std::optional<JobId> id{};  // default: a random one. A job with this id that exists already is an Error.
  // Give its Python processes a sitecustomize (docs/protocol.md, "Stacks"): stacks() reads their stacks
  // without py-spy, and a torch that was built without libuv does without it.
  bool enable_stacks = false;
  // A script of the command that is missing on its server is an Error (usage), and a missing project or
  // Python environment an Error.
  bool check = true;
  // For a login node of Slurm, else an Error (usage). Slurm may run it again when a node fails or it is
  // preempted.
  bool requeue = false;
  // The same: one job for each of these numbers, as an array of Slurm; each finds its own in
  // SLURM_ARRAY_TASK_ID, and is tagged "array-N". Empty: no array.
  std::vector<int> array{};
  std::optional<int> array_limit{};  // so many of them at the same time
  std::vector<Job> after{};          // it begins when these jobs of the same server have succeeded
  LeaseRequest lease{};              // what only it may use on its server
  std::optional<Cancel> cancel{};    // ends this call alone
};

struct StartResult {
  Job job;                         // with its key, also when it did not start
  std::vector<Job> more{};         // the other jobs of an array
  std::optional<Error> error;      // it did not start, or that is not known
  std::optional<Error> unsaved{};  // as LaunchResult::unsaved
};

struct JobsRequest {
  JobSelection selection{};
  bool some = false;             // it is an Error (usage) when no job fits
  bool unfinished_only = false;  // as far as is known here, before the servers are asked
  bool ask = true;               // ask the servers of unfinished jobs; else what is known here
  // Without names and tags: of what is over, as far as is known here, only this.
  std::optional<EndedLately> lately{};
  // How long a server may take to connect, and how long it may then be silent.
  std::chrono::milliseconds patience{3000};
};

struct ProjectStatus {
  std::vector<Job> unfinished;  // by key; jobs that are hidden count nowhere
  std::vector<Job> ended;       // since status_was_told(); the first time: within a day
  std::vector<Job> newest;      // the job that was started last, with all ranks of its launch; or none
  bool any_job = false;
  int highest_key = 0;              // of these jobs
  bool sent = false;                // the project was sent from here, to some server
  std::vector<std::string> gone{};  // servers where a launch or job last found none of the sent files
  int servers = 0;                  // how many configs.yaml has
};

// What a job writes, as it comes: bytes in pieces of any size, and none with those of two ranks. While a call
// takes its time, output waits on the server.
struct JobOutput {
  std::size_t job = 0;        // by index into the jobs given
  std::optional<int> rank{};  // whose it is; nullopt: no rank's, but what runs the ranks (torchrun's agent)
  OutputStream stream = OutputStream::out;
  std::string_view text{};
  // With FollowRequest::fold, where a rank wrote it: all ranks that did, in order; `job` and `rank` are the
  // first one's.
  std::span<const int> ranks{};
};

struct FollowRequest {
  std::optional<int> lines{};  // begin with the last lines; nullopt: from the first byte
  // Without `lines`: begin with what was written so long ago, by the clock of each server. The moment is
  // known to about 15 s, and then rather more is handed over; of a job without a lifeline (docs/protocol.md)
  // only whether the output has grown since.
  std::optional<std::chrono::seconds> since{};
  bool follow = true;            // false: stop at the end of what is there
  bool first_rank_only = false;  // hand over the output of rank 0 alone; wait for the others in silence
  // Hand over only the output of these, and of jobs that run several ranks (Job::ranks) also what is no
  // rank's; wait for the others in silence. Empty: of all. With first_rank_only it is rank 0.
  std::vector<int> ranks{};
  // Hand over only lines in which this is found, an extended regular expression of POSIX. Error (usage) for
  // what is none.
  std::string grep{};
  // Of one launch: hand over a line once that several ranks write within 150 ms of each other; with `follow`
  // false, whenever they wrote it. The order of each rank's lines stays. Lines that only single ranks have
  // written so far (apart from their numbers) come without delay.
  bool fold = false;
  // Of a launch under Slurm, where one job runs all ranks and each has an output of its own: hand over all of
  // them.
  bool each_rank = false;
  bool silent = false;               // hand over no output: wait for the ends
  bool judge = false;                // where the jobs are one launch, find out which of them failed first
  std::chrono::seconds patience{0};  // how long a server that was not reached yet is tried again
  // Where the jobs are one launch: a server that does not answer for so long is given up
  // (FollowResult::gone), once all other ranks have ended since, or some were ended because it was lost.
  std::chrono::seconds lost_after{60};
  // End the ranks of this launch that still run so long after one of them has failed. nullopt: leave them.
  std::optional<std::chrono::seconds> end_others{};
  std::function<void(const JobOutput&)> on_output{};  // with grep or fold in whole lines
  // A server was reached, or is not waited for any more. May be told again.
  std::function<void(const std::string& server)> on_settled{};
  std::function<void(std::size_t, const Job&)> on_ended{};  // all of its output was handed over before
  std::optional<Cancel> cancel{};                           // ends this call alone
};
struct FollowResult {
  std::vector<Job> jobs;      // as they are now
  std::vector<Error> errors;  // what could not be followed to its end: a job or a server each
  std::vector<std::string>
      gone;  // servers that were given up: what is not known to have ended there is unknown
  std::optional<Verdict> verdict;  // with FollowRequest::judge, once all have ended or are given up
};

struct PullRequest {
  Job job;
  // Relative to the project there; FOLDER/ means its content. A path that is not there and has * ? or [ is a
  // pattern, for all that fit it.
  std::vector<std::string> paths;
  std::filesystem::path to = ".";
  bool force = false;  // also in place of files that are newer here
  std::function<void(const TransferProgress&)> on_progress{};
};

struct ResultsRequest {
  std::string launch = "last";  // as History names it
  std::function<void(const TransferProgress&)> on_progress{};
};
// What a launch wrote to the `outputs` of configs.yaml, copied to results/KEY: the files of its first server
// there, and those of another one in a folder of that server's name.
struct Results {
  std::filesystem::path folder;
  std::vector<std::string> files;     // copied now, by their names in `folder`; foreign text
  std::vector<std::string> newer;     // not replaced, as they are newer here
  std::vector<std::string> waiting;   // parts of checkpoints that are not complete, which were not copied
  std::vector<std::string> warnings;  // foreign text
  std::uint64_t bytes = 0;
  std::size_t found = 0;      // files that the launch wrote, incomplete checkpoints left out
  std::vector<Error> errors;  // a server each; what others have was copied
};

// What came of a trial of `notify:`.
struct NotifyTrial {
  std::string server;
  bool sent = false;
  std::string answer;  // what came back, or why nobody was told; foreign text
};

struct AuthorizeRequest {
  std::vector<std::string> servers{};
  std::filesystem::path key{};  // default: the server's private_key or IdentityFile, else of ~/.ssh/id_*
  bool generate = false;        // make the key when there is none
};
struct AuthorizeResult {
  std::string server;
  std::filesystem::path key;  // the private half's file
  bool added = false;         // false: it stood there already
  std::string open_folder;    // others may write to it, so that a strict sshd ignores the key; or ""
  bool configured = true;     // configs.yaml or ~/.ssh lead to this key for the server
  std::optional<Error> error;
};

struct UninstallRequest {
  std::vector<std::string> servers{};
  bool dry_run = false;  // remove nothing
};
struct UninstallResult {
  // A job that runs on the server. Nothing is removed then.
  struct RunningJob {
    std::optional<JobId> id;
    std::optional<int> pid;
    std::string project;  // its folder on the server, or "" if unknown; foreign text
  };
  struct Leftover {
    enum class Reason {
      failed,      // could not be removed
      link,        // not followed
      foreign,     // belongs to another user
      unknown,     // not a file of remote
      recent,      // another command may be installing it
      unfinished,  // jobs without a result may use it on another machine
      unmoved,     // has files of frozen launches that could not be moved to the project
      lease,       // a lease that is in use or has just ended
      results,     // results of jobs
    };
    Reason reason = Reason::failed;
    std::string path;  // foreign text
    // Whether it is what uninstall() should have removed. Leases remove themselves, and results are the
    // user's.
    bool counts() const { return reason != Reason::lease && reason != Reason::results; }
  };
  std::string server;
  std::vector<RunningJob> running{};
  std::vector<std::string> removed{};  // would be removed, with UninstallRequest::dry_run; foreign text
  std::vector<Leftover> left{};
  std::optional<Error> error{};
};

struct LoginRequest {
  std::vector<std::string> servers{};
  std::chrono::seconds open_for = std::chrono::hours(8);  // after the last command over it
  // ssh may ask for what it needs on the terminal of this process, for one server at a time: codes, PINs,
  // passphrases. Without it, a server that asks for something is an error.
  bool on_terminal = false;
  // Called just before that, with what the questions are for: the server's name, or "jump host NAME".
  std::function<void(const std::string&)> on_questions{};
};
struct LoginResult {
  std::string server;
  bool was_open = false;  // it was open before, and answers
  Instant until;          // closed then, unless a command uses it before
  std::optional<Error> error;
};

// How one server is reached: each setting with the place that it comes from ("configs.yaml:12", "default").
// Secrets are masked.
struct ServerSetting {
  std::string name;
  std::string value;
  std::string from;
  std::string problem;  // what is wrong with it; or ""
};
struct ServerInfo {
  std::string name;
  std::string hostname;
  std::vector<ServerSetting> settings;
  std::optional<Error> error;
  bool logged_in = false;  // an OpenSSH master is open for it, which commands use
};

// How a server is now.
struct ServerState {
  std::string server;
  std::optional<int> gpus;           // that it has; nullopt: it was not reached
  std::optional<int> expected_gpus;  // as configs.yaml says; nullopt: it does not
  std::size_t jobs = 0;              // of this project that have not ended, as far as is known
  std::optional<Error> error;        // why it was not reached
  std::optional<ServerLoad> load{};  // nullopt: it was not reached
  GpuFacts gpu_facts{};              // in brief, as ServerSample::gpus
};

}  // namespace remote
