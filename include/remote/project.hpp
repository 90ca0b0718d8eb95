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
struct SweepPlan;
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

  // What sweep() would run; asks no server. Throws Error (usage).
  SweepPlan plan(const SweepRequest& request);
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
  // Removes jobs here alone, with their output: of servers that are gone for good. What runs there goes on.
  void forget(const std::vector<Job>& jobs);

  // Puts a public key on the servers and proves that a login with it alone works.
  std::vector<AuthorizeResult> authorize(const AuthorizeRequest& request = {},
                                         const std::optional<Cancel>& cancel = {});
  // Removes everything that remote has installed on the servers, unless jobs of the user run there, and
  // checks that nothing is left. The project's files, environments and jobs' folders stay.
  std::vector<UninstallResult> uninstall(const UninstallRequest& request = {},
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
