#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/check.hpp>
#include <remote/error.hpp>
#include <remote/events.hpp>
#include <remote/exit_status.hpp>
#include <remote/job.hpp>
#include <remote/launch.hpp>
#include <remote/report.hpp>
#include <remote/terminal.hpp>
#include <remote/top.hpp>
#include <remote/trust.hpp>
#include <remote/why.hpp>

// The API: a project folder with its .remote/configs.yaml, and what can be done with its servers and jobs.
//
// The library installs no signal handler, ends no process, touches no terminal and changes no environment
// variable. SIGPIPE is blocked on the threads that it uses while it uses them.

namespace remote {

class Project;
struct ForwardRequest;
class History;
struct Rerun;
struct RerunRequest;
struct ResumeRequest;
struct SweepBest;
struct SweepRequest;
struct SweepResults;
struct SweepStarted;
struct WebRequest;
namespace project {
class State;
Project project_of(std::unique_ptr<State> state);
}  // namespace project

// What a program gives to a Project. Callbacks, these and those of requests, come one at a time on the thread
// that called the Project, and may call it in turn; only ask_secret and allow may not make a call that needs
// servers (Error, usage). What a callback throws ends the call, and comes out of it.
struct Hooks {
  std::function<void(const Event&)> on_event{};
  // Asks for a password, a passphrase or a one-time code; nullopt: there is nobody to ask.
  std::function<std::optional<std::string>(const std::string& prompt)> ask_secret{};
  // Asks whether the user allows what the project wants of this machine. Yes is remembered for these very
  // values, outside the project; absent: no. A call that needs servers and may not have them is an Error
  // (usage); symbolic links that were not allowed are not sent.
  std::function<bool(const std::vector<Demand>&)> allow{};
  // Ends every call, now and later: it throws Interrupted soon. To end one call alone, give it a Cancel.
  Cancel cancel{};
  // An unknown key of configs.yaml is an Error (usage) of the constructor, not a ConfigWarning.
  bool strict = false;
  // The program that rsync starts as its remote shell: remote-rsync-pipe, of which find_package(remote) gives
  // the place as remote_RSYNC_HELPER. Empty: where the library was configured to be installed, else in PATH.
  std::filesystem::path rsync_helper{};
};

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
  TerminalSide
      terminal{};  // its type is not used: what comes is text that moves the cursor by \r and \b alone
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
  // For a login node of Slurm, else an Error (usage). Slurm may run it again when a node fails or it is
  // preempted.
  bool requeue = false;
  // The same: one job for each of these numbers, as an array of Slurm; each finds its own in
  // SLURM_ARRAY_TASK_ID, and is tagged "array-N". Empty: no array.
  std::vector<int> array{};
  std::optional<int> array_limit{};  // so many of them at the same time
  std::vector<Job> after{};          // it begins when these jobs of the same server have succeeded
  LeaseRequest lease{};              // what it has for itself on its server
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
  int highest_key = 0;  // of all jobs that were looked at
  bool sent = false;    // the project was sent from here, to some server
  int servers = 0;      // how many configs.yaml has
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
  // written so far (the same but for numbers) come without delay.
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

// Every call throws Error for what concerns the call as a whole, and Interrupted when it was cancelled; what
// concerns one server or job is in its result. After either the Project can be used as before. A Project may
// be used by one thread at a time, also from its callbacks; several Projects of one folder may be used by
// several threads. Connections are made when they are needed, and kept while the Project lives.
// A `cancel` ends one call alone, from any thread or from a signal handler.
class Project {
 public:
  // The nearest folder from `start` upwards that holds .remote/configs.yaml. Throws Error (usage).
  static std::filesystem::path find(const std::filesystem::path& start);

  // Reads `folder`/.remote/configs.yaml. Throws Error (usage) with file, line and column.
  explicit Project(const std::filesystem::path& folder, Hooks hooks = {});
  ~Project();
  Project(Project&&) noexcept;
  Project& operator=(Project&&) noexcept;

  // Why others can change the project in `folder`, so that it is refused; nullopt: it is the user's own.
  static std::optional<Demand> folder_demand(const std::filesystem::path& folder);
  // Allows this to the project in `folder`, now and later; takes back all that it was allowed.
  static void allow(const std::filesystem::path& folder, const std::vector<Demand>& demands);
  static void forget(const std::filesystem::path& folder);

  // What the project wants of this machine and the user has not allowed.
  std::vector<Demand> demands();
  // Asks Hooks::allow about the settings now, not first when a server is needed. Throws Error (usage).
  void require_trust();

  const std::filesystem::path& folder() const;
  const std::string& name() const;
  // The names that these globs stand for, in the order of the file. Throws Error (usage) for one that fits
  // none.
  std::vector<std::string> server_names(const std::vector<std::string>& globs = {}) const;

  // The servers that these hosts are, by their names. Each stands once: where a host is repeated, its slots
  // are added (one, where none are given). Throws Error (usage) for a host that is none of the project's.
  std::vector<LaunchHost> resolve_hosts(const std::vector<LaunchHost>& hosts) const;

  // What `launch:` of configs.yaml says; with a name, what that one of `launches:` says and inherits from it.
  // Throws Error (usage) for an unknown name.
  LaunchDefaults launch_defaults(const std::string& name = {}) const;
  // The names in `launches:`, in the order of the file.
  std::vector<std::string> launch_names() const;

  // Asks no server.
  std::vector<ServerInfo> servers(const std::vector<std::string>& globs = {});

  // Connects to the servers, and asks them.
  std::vector<ServerState> server_states(const std::vector<std::string>& globs = {},
                                         const std::optional<Cancel>& cancel = {});

  // Whether they are fit for a run. A server that cannot be asked fails, and harms no other.
  CheckReport check(const CheckRequest& request = {}, const std::optional<Cancel>& cancel = {});
  // Runs the harmless fixes of what was found on the servers (Fix::harmless), side by side. What failed, an
  // error a server.
  std::vector<Error> mend(const CheckReport& report, const std::optional<Cancel>& cancel = {});
  // Samples the servers and their jobs side by side, again and again, until on_wake() says that it is enough
  // or, with WatchRequest::once, each has been sampled. A server that does not answer holds up no other one.
  void watch(const WatchRequest& request, const std::optional<Cancel>& cancel = {});

  std::vector<ServerRun> run(const RunRequest& request, const std::optional<Cancel>& cancel = {});
  // Opens the user's login shell there, in the project's folder and environment, and stays until it ends.
  ServerRun shell(const ShellRequest& request, const std::optional<Cancel>& cancel = {});

  // Opens ports of servers on this machine (remote/forward.hpp) until it is cancelled (Interrupted) or
  // ForwardRequest::job has ended. A connection that breaks is made anew (events LinkLost and LinkBack); what
  // goes through it breaks. Throws Error when a server cannot be reached at first, or refuses.
  void forward(const ForwardRequest& request, const std::optional<Cancel>& cancel = {});
  // Starts such a job, or joins one that runs, and opens its port in the same way. Returns when the job has
  // ended by itself; throws Error when that is before its port has answered.
  void web(const WebRequest& request, const std::optional<Cancel>& cancel = {});

  std::vector<PrepareResult> prepare(const PrepareRequest& request = {},
                                     const std::optional<Cancel>& cancel = {});
  // What would be sent to those of these servers (globs) that have nothing yet. Asks no server.
  FirstSync first_sync(const std::vector<std::string>& servers = {},
                       const std::optional<Cancel>& cancel = {});

  // What launch() would start; the servers are asked, and nothing is started.
  Plan plan(const LaunchRequest& request, const std::optional<Cancel>& cancel = {});
  // Starts all ranks. Where some do not start, the others are ended again (LaunchRequest::end_others).
  LaunchResult launch(const LaunchRequest& request, const std::optional<Cancel>& cancel = {});
  // What can be had again of a launch on record (remote/history.hpp). Asks no server. Throws Error (usage)
  // where a server or the command is gone.
  Rerun plan_rerun(const RerunRequest& request, const std::optional<Cancel>& cancel = {});
  // Sends the code and starts the launch. With `code_of_now`, and where its own is gone, with what is here.
  LaunchResult rerun(const Rerun& rerun, bool code_of_now = false, const std::optional<Cancel>& cancel = {});
  // Starts one job.
  StartResult start(const JobRequest& request, const std::optional<Cancel>& cancel = {});

  // Starts a sweep (remote/sweep.hpp): records a job for each point, and leaves the list to the servers.
  // Throws Error where nothing was started.
  SweepStarted sweep(const SweepRequest& request, const std::optional<Cancel>& cancel = {});
  // Goes on with a sweep. Throws Error where that could run a point twice, or nothing is missing.
  SweepStarted resume_sweep(const ResumeRequest& request, const std::optional<Cancel>& cancel = {});
  // Asks the servers. `launch`: as History names it. Throws Error (usage) for what is no sweep.
  SweepResults sweep_results(const std::string& launch, const SweepBest& by,
                             const std::optional<Cancel>& cancel = {});

  // The jobs that fit, by key. An unfinished job about which its server does not answer within
  // JobsRequest::patience is `unknown`.
  std::vector<Job> jobs(const JobsRequest& request = {}, const std::optional<Cancel>& cancel = {});
  // The launches on record (remote/history.hpp), completed where they have ended meanwhile. Asks as jobs()
  // does, if it has to: a launch with a job that is unknown is unknown in what it returns.
  History history(const std::optional<Cancel>& cancel = {});
  // Where the project stands. Asks as jobs() does.
  ProjectStatus status(const std::optional<Cancel>& cancel = {});
  // A person has seen this: what it has as ended is no news any more.
  void status_was_told(const ProjectStatus& status);
  // Asks the servers about these jobs again.
  std::vector<Job> refresh(std::vector<Job> jobs, const std::optional<Cancel>& cancel = {});
  // The ranks of the same launch as these jobs.
  std::vector<Job> with_launch(const std::vector<Job>& jobs);
  // The newest running rank 0 that has these tags; throws Error (usage) that says what there is instead.
  Job newest_master(const std::vector<std::string>& tags = {});

  // Hands over the output of jobs as it comes, until they end. A broken link is made anew, and no byte is
  // lost or comes twice.
  FollowResult follow(const std::vector<Job>& jobs, const FollowRequest& request = {},
                      const std::optional<Cancel>& cancel = {});
  // Waits for the ends of those that have not ended yet. Jobs that are one launch are judged.
  FollowResult wait(const std::vector<Job>& jobs, std::function<void(std::size_t, const Job&)> on_ended = {},
                    const std::optional<Cancel>& cancel = {});
  // Ends jobs, and looks that nothing of them is left.
  KillResult kill(const std::vector<Job>& jobs, const KillRequest& request = {},
                  const std::optional<Cancel>& cancel = {});
  // The Python stacks of running jobs.
  StacksResult stacks(const std::vector<Job>& jobs, const std::optional<Cancel>& cancel = {});
  // Brings pdb of a rank that waits in a debugger to a terminal, until it goes on or the user has left.
  Attached attach(const AttachRequest& request, const std::optional<Cancel>& cancel = {});
  // Why these jobs, which are of one launch, stand still or are slow: looks at them twice, and judges. Ended
  // jobs of the launch may be among them. Throws Error (usage) for jobs of Slurm.
  Why why(const std::vector<Job>& jobs, const WhyRequest& request = {},
          const std::optional<Cancel>& cancel = {});
  // Brings files that a job wrote to this machine.
  SyncReport pull(const PullRequest& request, const std::optional<Cancel>& cancel = {});
  // Copies what a launch wrote since it began. Again: what is new since.
  Results pull_results(const ResultsRequest& request = {}, const std::optional<Cancel>& cancel = {});
  // Tells whom `notify:` of configs.yaml names that this is a test, from the first server. Error (usage):
  // there is no `notify:`.
  NotifyTrial try_notify(const std::optional<Cancel>& cancel = {});
  // Where jobs are recorded on this machine and their output is brought: a folder for each, named by its id.
  const std::filesystem::path& jobs_folder() const;
  // Brings the output of jobs into the jobs folder here. Returns the errors, a server each.
  std::vector<Error> fetch_logs(const std::vector<Job>& jobs, const std::optional<Cancel>& cancel = {});
  // What there is to tell about a launch or a job: asks its servers, brings its output and reads it. A server
  // that does not answer is in Report::errors.
  Report report(const ReportRequest& request, const std::optional<Cancel>& cancel = {});
  // Removes ended jobs, here and on the servers.
  CleanResult clean(const std::vector<Job>& jobs, const std::optional<Cancel>& cancel = {});

  // Puts a public key on the servers and proves that a login with it alone works.
  std::vector<AuthorizeResult> authorize(const AuthorizeRequest& request = {},
                                         const std::optional<Cancel>& cancel = {});
  // Opens an OpenSSH master for each server, and before it for its jump hosts: what has to be asked is asked
  // once, and each is proved by a command over it. Commands use them from then on, also those of other
  // processes.
  std::vector<LoginResult> login(const LoginRequest& request = {}, const std::optional<Cancel>& cancel = {});
  // Closes those that login() or a command opened; all, also those of jump hosts, where no server is named.
  // Returns the names of what was closed. Commands that run over them lose their link.
  std::vector<std::string> logout(const std::vector<std::string>& servers = {},
                                  const std::optional<Cancel>& cancel = {});

 private:
  friend Project project::project_of(std::unique_ptr<project::State> state);
  explicit Project(std::unique_ptr<project::State> state);
  std::unique_ptr<project::State> state_;
};

}  // namespace remote
