#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/check.hpp>
#include <remote/error.hpp>
#include <remote/events.hpp>
#include <remote/job.hpp>
#include <remote/launch.hpp>
#include <remote/report.hpp>
#include <remote/requests.hpp>
#include <remote/top.hpp>
#include <remote/trust.hpp>
#include <remote/why.hpp>

// The API: a project folder with its .remote/configs.yaml, and the operations on its servers and jobs.
//
// The library installs no signal handlers, exits no process, touches no terminal and changes no environment
// variables.
// It blocks SIGPIPE on the threads that it uses, while it uses them.

namespace remote {

class Project;
struct ForwardRequest;
class History;
struct Rerun;
struct RerunRequest;
struct ResumeRequest;
struct SweepBest;
struct SweepPlan;
struct SweepRequest;
struct SweepResults;
struct SweepStarted;
struct WebRequest;
namespace project {
class State;
Project project_of(std::unique_ptr<State> state);
}  // namespace project

// Callbacks and settings that a program passes to a Project. Callbacks, both these and those in requests, run
// one at a time on the thread that called the Project, and may call it in turn; only ask_secret and allow
// must not make a call that needs servers (Error, usage). An exception in a callback ends the call and is
// passed on to the caller.
struct Hooks {
  std::function<void(const Event&)> on_event{};
  // Prompts for a password, a passphrase or a one-time code; nullopt: prompting is not possible.
  std::function<std::optional<std::string>(const std::string& prompt)> ask_secret{};
  // Asks the user whether to allow what the project wants to do on this machine. A yes is remembered for
  // exactly these values, outside the project; no callback: no. If the answer is no, a call that needs
  // servers throws Error (usage); symbolic links that were not allowed are not sent.
  std::function<bool(const std::vector<Demand>&)> allow{};
  // Cancels every current and future call: it soon throws Interrupted. To cancel only one call, pass it a
  // Cancel.
  Cancel cancel{};
  // An unknown key in configs.yaml is an Error (usage) of the constructor instead of a ConfigWarning.
  bool strict = false;
  // The program that rsync uses as its remote shell: remote-rsync-pipe. find_package(remote) sets its path as
  // remote_RSYNC_HELPER. Empty: the configured install location, or else PATH.
  std::filesystem::path rsync_helper{};
};

// Every call throws Error for a failure of the whole call, and Interrupted if it was cancelled; failures of
// one server or job are in its result. The Project can still be used after either exception. Only one thread
// at a time may use a Project, but its callbacks may use it too; different threads may use several Projects
// of one folder. Connections are made on demand and kept for the life of the Project. A `cancel` argument
// cancels only that call, from any thread or a signal handler.
class Project {
 public:
  // The nearest folder, from `start` upward, that contains .remote/configs.yaml. Throws Error (usage).
  static std::filesystem::path find(const std::filesystem::path& start);

  // Reads `folder`/.remote/configs.yaml. Throws Error (usage) with file, line and column.
  explicit Project(const std::filesystem::path& folder, Hooks hooks = {});
  ~Project();
  Project(Project&&) noexcept;
  Project& operator=(Project&&) noexcept;

  // Why the project in `folder` is refused: other users can change it; nullopt: it is safe.
  static std::optional<Demand> folder_demand(const std::filesystem::path& folder);
  // Allows these for the project in `folder`, permanently. forget() revokes everything that was allowed.
  static void allow(const std::filesystem::path& folder, const std::vector<Demand>& demands);
  static void forget(const std::filesystem::path& folder);

  // What the project wants to do on this machine that the user has not allowed.
  std::vector<Demand> demands();
  // Asks Hooks::allow about the settings now, instead of when a server is first needed. Throws Error (usage).
  void require_trust();

  const std::filesystem::path& folder() const;
  const std::string& name() const;
  // The names that match these globs, in the order of the file. Throws Error (usage) for a glob that matches
  // none.
  std::vector<std::string> server_names(const std::vector<std::string>& globs = {}) const;

  // The servers of these hosts, by name, each once: the slots of a repeated host are added up (1 if not
  // given). Throws Error (usage) for a host that is not in the project.
  std::vector<LaunchHost> resolve_hosts(const std::vector<LaunchHost>& hosts) const;

  // The `launch:` defaults of configs.yaml; with a name, that entry of `launches:` including inherited
  // settings. Throws Error (usage) for an unknown name.
  LaunchDefaults launch_defaults(const std::string& name = {}) const;
  // The names in `launches:`, in the order of the file.
  std::vector<std::string> launch_names() const;

  // Contacts no server.
  std::vector<ServerInfo> servers(const std::vector<std::string>& globs = {});

  // Connects to the servers and queries them.
  std::vector<ServerState> server_states(const std::vector<std::string>& globs = {},
                                         const std::optional<Cancel>& cancel = {});

  // Checks whether the servers are ready for a run. A server that cannot be queried fails without affecting
  // the others.
  CheckReport check(const CheckRequest& request = {}, const std::optional<Cancel>& cancel = {});
  // Runs the harmless fixes among the findings on the servers (Fix::harmless), in parallel. Returns one error
  // per server that failed.
  std::vector<Error> mend(const CheckReport& report, const std::optional<Cancel>& cancel = {});
  // Samples the servers and their jobs repeatedly, in parallel, until on_wake() returns false or, with
  // WatchRequest::once, each has been sampled. A server that does not answer does not delay the others.
  void watch(const WatchRequest& request, const std::optional<Cancel>& cancel = {});

  std::vector<ServerRun> run(const RunRequest& request, const std::optional<Cancel>& cancel = {});
  // Opens the user's login shell there, in the project's folder and environment, and returns when it ends.
  ServerRun shell(const ShellRequest& request, const std::optional<Cancel>& cancel = {});

  // Forwards ports of servers to this machine (remote/forward.hpp) until cancelled (Interrupted) or until
  // ForwardRequest::job has ended. A broken connection is re-established (events LinkLost and LinkBack); the
  // forwarded connections through it break. Throws Error if a server is unreachable at first, or refuses.
  void forward(const ForwardRequest& request, const std::optional<Cancel>& cancel = {});
  // Starts such a job, or joins a running one, and forwards its port in the same way. Returns when the job
  // has ended by itself; throws Error if that happens before its port answers.
  void web(const WebRequest& request, const std::optional<Cancel>& cancel = {});

  std::vector<PrepareResult> prepare(const PrepareRequest& request = {},
                                     const std::optional<Cancel>& cancel = {});
  // What would be sent to those of these servers (globs) that have no files yet. Contacts no server.
  FirstSync first_sync(const std::vector<std::string>& servers = {},
                       const std::optional<Cancel>& cancel = {});

  // What launch() would start. It queries the servers but starts nothing.
  Plan plan(const LaunchRequest& request, const std::optional<Cancel>& cancel = {});
  // Starts all ranks. If some do not start, it stops the others (LaunchRequest::end_others).
  LaunchResult launch(const LaunchRequest& request, const std::optional<Cancel>& cancel = {});
  // What can be restored of a recorded launch (remote/history.hpp). Contacts no server. Throws Error (usage)
  // if a server or the command no longer exists.
  Rerun plan_rerun(const RerunRequest& request, const std::optional<Cancel>& cancel = {});
  // Sends the code and starts the launch; uses the current files with `code_of_now`, or if its own code is
  // gone.
  LaunchResult rerun(const Rerun& rerun, bool code_of_now = false, const std::optional<Cancel>& cancel = {});
  StartResult start(const JobRequest& request, const std::optional<Cancel>& cancel = {});

  // What sweep() would run; contacts no server. Throws Error (usage).
  SweepPlan plan(const SweepRequest& request);
  // Starts a sweep (remote/sweep.hpp): records a job for each point and hands the list to the servers. Throws
  // Error if nothing was started.
  SweepStarted sweep(const SweepRequest& request, const std::optional<Cancel>& cancel = {});
  // Continues a sweep. Throws Error if this could run a point twice, or if no point is missing.
  SweepStarted resume_sweep(const ResumeRequest& request, const std::optional<Cancel>& cancel = {});
  // Queries the servers. `launch`: as named in History. Throws Error (usage) if it is not a sweep.
  SweepResults sweep_results(const std::string& launch, const SweepBest& by,
                             const std::optional<Cancel>& cancel = {});

  // The matching jobs, by key. An unfinished job whose server does not answer within JobsRequest::patience is
  // `unknown`.
  std::vector<Job> jobs(const JobsRequest& request = {}, const std::optional<Cancel>& cancel = {});
  // The recorded launches (remote/history.hpp), completed for those that have ended since. Queries servers
  // like jobs() if needed; a launch with an unknown job is itself unknown.
  History history(const std::optional<Cancel>& cancel = {});
  // The status of the project. Queries servers like jobs().
  ProjectStatus status(const std::optional<Cancel>& cancel = {});
  // Records that the user has seen this: the jobs that it lists as ended will not be listed as such again.
  void status_was_told(const ProjectStatus& status);
  // Queries the servers for the current state of these jobs.
  std::vector<Job> refresh(std::vector<Job> jobs, const std::optional<Cancel>& cancel = {});
  // All ranks of the launches that these jobs belong to.
  std::vector<Job> with_launch(const std::vector<Job>& jobs);
  // The newest running rank 0 with these tags. Throws Error (usage) with the alternatives.
  Job newest_master(const std::vector<std::string>& tags = {});

  // Passes on the output of jobs as it is written, until they end. A broken connection is re-established,
  // without lost or repeated bytes.
  FollowResult follow(const std::vector<Job>& jobs, const FollowRequest& request = {},
                      const std::optional<Cancel>& cancel = {});
  // Waits for the jobs that have not ended. If the jobs are one launch, the result has a verdict.
  FollowResult wait(const std::vector<Job>& jobs, std::function<void(std::size_t, const Job&)> on_ended = {},
                    const std::optional<Cancel>& cancel = {});
  // Stops jobs, and verifies that none of their processes are left.
  KillResult kill(const std::vector<Job>& jobs, const KillRequest& request = {},
                  const std::optional<Cancel>& cancel = {});
  StacksResult stacks(const std::vector<Job>& jobs, const std::optional<Cancel>& cancel = {});
  // Connects the terminal to pdb of a rank that waits in a debugger, until the rank continues or the user
  // detaches.
  Attached attach(const AttachRequest& request, const std::optional<Cancel>& cancel = {});
  // Why these jobs of one launch hang or are slow: samples them twice and draws a conclusion. May include
  // ended jobs of the launch. Throws Error (usage) for Slurm jobs.
  Why why(const std::vector<Job>& jobs, const WhyRequest& request = {},
          const std::optional<Cancel>& cancel = {});
  // Copies files that a job wrote to this machine.
  SyncReport pull(const PullRequest& request, const std::optional<Cancel>& cancel = {});
  // Copies the files that a launch has written since it began. When called again, copies only newer files.
  Results pull_results(const ResultsRequest& request = {}, const std::optional<Cancel>& cancel = {});
  // Sends a test notification to the recipients in `notify:` of configs.yaml, from the first server. Error
  // (usage): there is no `notify:`.
  NotifyTrial try_notify(const std::optional<Cancel>& cancel = {});
  // The folder for records and output of jobs on this machine, with one folder per job, named by its id.
  const std::filesystem::path& jobs_folder() const;
  // Copies the output of jobs to the jobs folder here. Returns the errors, one per server.
  std::vector<Error> fetch_logs(const std::vector<Job>& jobs, const std::optional<Cancel>& cancel = {});
  // Collects a report about a launch or a job: queries its servers, copies its output and reads it. Servers
  // that do not answer are in Report::errors.
  Report report(const ReportRequest& request, const std::optional<Cancel>& cancel = {});
  // Removes ended jobs, both here and on the servers.
  CleanResult clean(const std::vector<Job>& jobs, const std::optional<Cancel>& cancel = {});
  // Removes jobs and their output only here, for servers that are gone for good. Any running processes there
  // continue.
  void forget(const std::vector<Job>& jobs);

  // Installs a public key on the servers and verifies that a login with only that key works.
  std::vector<AuthorizeResult> authorize(const AuthorizeRequest& request = {},
                                         const std::optional<Cancel>& cancel = {});
  // Removes everything that remote has installed on the servers, unless jobs of the user are running there,
  // and verifies that nothing is left. Keeps the project's files, environments and job folders.
  std::vector<UninstallResult> uninstall(const UninstallRequest& request = {},
                                         const std::optional<Cancel>& cancel = {});
  // Opens an OpenSSH master for each server, and first for its jump hosts, so that prompts appear only once;
  // verifies each with a command through it. From then on commands use the masters, including commands of
  // other processes.
  std::vector<LoginResult> login(const LoginRequest& request = {}, const std::optional<Cancel>& cancel = {});
  // Closes the masters that login() or a command opened; if no server is named, all of them, including those
  // of jump hosts. Returns the names of those closed. Commands that use them lose their connection.
  std::vector<std::string> logout(const std::vector<std::string>& servers = {},
                                  const std::optional<Cancel>& cancel = {});

 private:
  friend Project project::project_of(std::unique_ptr<project::State> state);
  explicit Project(std::unique_ptr<project::State> state);
  std::unique_ptr<project::State> state_;
};

}  // namespace remote
