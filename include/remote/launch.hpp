#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <remote/error.hpp>
#include <remote/job.hpp>
#include <remote/lease.hpp>
#include <remote/usable.hpp>

// A distributed launch: the request, the plan and the result.

namespace remote {

// Environment variables, in order; a later entry overrides an earlier one of the same name.
using Env = std::vector<std::pair<std::string, std::string>>;

// Set to 1 in the Env of a launch or job that has `enable_stacks`: after an uncaught exception, the rank
// waits for Project::attach(). An Error (usage) with Slurm.
inline constexpr const char* pdb_on_error_variable = "REMOTE_PDB_ON_ERROR";

enum class ContainerEngine { docker, podman, apptainer };
// The name of its program: "docker".
std::string_view to_string(ContainerEngine engine);
std::optional<ContainerEngine> parse_container_engine(std::string_view name);

// When to pull an image before a start.
enum class ImagePull { missing, always, never };
// Parses the value in configs.yaml: "missing".
std::optional<ImagePull> parse_image_pull(std::string_view name);

struct Container {
  // nullopt: the first engine that has the image, or else the first one that works.
  std::optional<ContainerEngine> engine{};
  std::string image{};              // a name as the engine takes it; for apptainer also a file on the server
  std::vector<std::string> args{};  // options of the engine's `run` (`exec` for apptainer), one word each
  std::string workdir{};            // working directory; relative to the project's folder; empty: that folder
  ImagePull pull = ImagePull::missing;
};

// Number of ranks per server: a number, or one per GPU or core. automatic: one per GPU, or one per core if
// there are no GPUs.
enum class OnePer { automatic, gpu, core };
using RanksPerServer = std::variant<OnePer, int>;
inline constexpr int most_ranks_per_server = 4096;
// The value for --nproc-per-node: "auto", "gpu", "cpu", "4".
std::string to_string(const RanksPerServer& ranks);
// nullopt: not one of these words, nor a number from 1 to most_ranks_per_server.
std::optional<RanksPerServer> parse_ranks_per_server(std::string_view text);

// A server of a launch, as named in a hostfile.
struct LaunchHost {
  std::string name;            // the server's name in configs.yaml, its hostname, or its internal_address
  std::optional<int> slots{};  // number of ranks; nullopt: LaunchRequest::nproc
  std::string where{};         // for messages: "hosts.txt:3"
  // Indices of the GPUs that its ranks may use or, with `without_gpus`, may not use. Empty: all that
  // configs.yaml allows. Sets CUDA_VISIBLE_DEVICES and, if `slots` is not given, the number of ranks.
  std::vector<int> gpus{};
  bool without_gpus = false;
};

// How the agents of torchrun find each other. static_ cannot change or restart nodes.
enum class RendezvousMethod { static_, c10d };
// The value for --rdzv: "static".
std::string_view to_string(RendezvousMethod method);
std::optional<RendezvousMethod> parse_rendezvous(std::string_view name);

// The minimum and maximum number of servers of a launch.
struct NodeRange {
  int least = 1;
  int most = 1;
  bool operator==(const NodeRange&) const = default;
};
// "2" or "1:4".
std::string to_string(const NodeRange& nodes);
std::optional<NodeRange> parse_node_range(std::string_view text);

struct TorchrunOptions {
  // Default: c10d if `nodes` or `max_restarts` require it, otherwise static_.
  std::optional<RendezvousMethod> rendezvous{};
  // `most` must equal the number of servers in the launch. Default: all.
  std::optional<NodeRange> nodes{};
  std::optional<int> max_restarts{};  // how often the workers restart after a failure; default: 0
};

// How the ranks find each other. env: only by MASTER_ADDR and MASTER_PORT, torch's default. The others also
// set INIT_METHOD, for programs that pass it to init_process_group(): tcp: "tcp://MASTER_ADDR:MASTER_PORT";
// file: "file:///…", a file for this launch that all servers share.
enum class InitMethod { env, tcp, file };
// The value in configs.yaml: "env".
std::string_view to_string(InitMethod method);
std::optional<InitMethod> parse_init_method(std::string_view name);

// What can end an attempt of a launch: a rank that exited, was killed by a signal, or was killed for lack of
// memory; a lost server; a hang (LaunchRequest::hang_after). lifeline: the first server's lifeline died and
// was restarted; users cannot request that.
enum class RestartCause { exit, signal, oom, lost, hang, lifeline };
// The name in configs.yaml: "oom".
std::string_view to_string(RestartCause cause);
std::optional<RestartCause> parse_restart_cause(std::string_view name);

// Why a launch that had restarts left was not restarted.
enum class NoRestart {
  cause,             // the cause of the failure is not in --restart-on
  exit_code,         // the exit code is in --no-restart-exit
  repeated,          // the same rank failed twice at the same place, without a new checkpoint in between
  stopped,           // a user stopped a job, or a job's supervisor died
  too_few_servers,   // fewer than --min-servers are left
  unreached,         // a server never connected to the first one, so its ranks may still be running
  unfinished,        // on a server, an attempt could not be stopped or the next one could not be started
  coordinator_lost,  // the first server is lost, and no other server decides about restarts
  hang,              // it hung, and --on-hang is not `restart`
};
// The name in events and records: "too_few_servers".
std::string_view to_string(NoRestart reason);
std::optional<NoRestart> parse_no_restart(std::string_view name);

// What to do about a hang: only report it; kill the ranks; restart them, as after a failure. Before that, the
// servers save the data for Project::why().
enum class OnHang { leave, kill, restart };
// The value in configs.yaml: "leave".
std::string_view to_string(OnHang action);
std::optional<OnHang> parse_on_hang(std::string_view name);

// What starts the ranks; launchers() describes them. `sweep` only occurs in records of sweeps.
enum class Launcher { ranks, torchrun, mpi, sweep };
// The value for --launcher: "ranks".
std::string_view to_string(Launcher launcher);
std::optional<Launcher> parse_launcher(std::string_view name);

struct LaunchRequest {
  std::string command;                 // what every rank runs: a line for the server's shell
  std::vector<std::string> servers{};  // names or globs; none: all servers of the project
  // Replaces `servers`, in rank order; see Project::resolve_hosts().
  std::vector<LaunchHost> hosts{};
  RanksPerServer nproc = OnePer::automatic;
  std::optional<int> nodes{};        // for a Slurm login node: number of nodes; default: 1
  bool requeue = false;              // for a Slurm login node: see JobRequest
  std::vector<Job> after{};          // for a Slurm login node: see JobRequest
  std::optional<int> master_port{};  // default: a free one
  Env env{};
  // The container image that the ranks run in, instead of the one in configs.yaml; "none": no container.
  std::optional<std::string> image{};
  std::vector<std::string> tags{};  // default: the words of the command, and more
  Launcher launcher = Launcher::ranks;
  TorchrunOptions torchrun{};  // an error with another launcher
  // For the launcher mpi: its mpirun connects to the other servers with their own ssh, not through the
  // lifeline. An error with another launcher.
  bool mpi_over_ssh = false;
  InitMethod init_method = InitMethod::env;
  // For InitMethod::file: the folder of the file, which all servers share: absolute, "~/…", or relative to
  // the project's folder. "": the folder of the jobs, which is shared if the servers share a home.
  std::string init_dir{};
  bool python = true;                   // put `python` in front of a bare .py file; tag it torch
  bool local_rank_arg = false;          // append --local_rank=N to the command
  std::optional<bool> enable_stacks{};  // see JobRequest; default: the value of `python`
  bool tell_changes = true;  // report local changes since the project was last sent: see CodeChanged
  bool verify_sync = false;  // start only if the project is identical on all servers
  bool check = true;       // start only if no check finds a problem that would make it fail: see CheckWarned
  bool end_others = true;  // when a rank fails, stop the others
  std::chrono::seconds failure_grace{5};  // time for the others to exit on their own
  std::chrono::seconds lost_after{60};    // a server that is silent to the others for this long is lost
  // Maximum number of restarts after a failure; all ranks restart once all of their processes are gone:
  // docs/resilience.md.
  int restarts = 0;
  std::vector<RestartCause> restart_on{};  // the causes to restart for; none: any
  // Exit codes of a rank that prevent a restart.
  std::vector<int> no_restart_exit{};
  // Minimum number of servers for a restart after others are lost. nullopt: all.
  std::optional<int> min_servers{};
  // The launch hangs if no rank has written output or used a processor for this long: docs/resilience.md. 0:
  // no detection. An Error (usage) with Slurm and with containers.
  std::chrono::seconds hang_after{0};
  OnHang on_hang = OnHang::leave;
  // Wait up to two seconds until the servers report whether they can reach the first one: see NoLifeline.
  // follow() checks this too.
  bool await_lifelines = true;
  // Resources on each of its servers that no other job may use. OnePer::automatic then means one rank per
  // leased GPU, or per leased core if no GPUs are leased.
  LeaseRequest lease{};
  // For its record (remote/history.hpp). A name starts with a letter or '_', so that it cannot be mistaken
  // for a key.
  std::string name{};
  std::string note{};
  // Run in a separate tree on each server, which later syncs do not change: docs/frozen.md. nullopt: no.
  std::optional<bool> frozen{};
  // The digest of the tree of an earlier launch to run in (the fact `tree` of its record); implies `frozen`.
  // "": the files that were last sent.
  std::string tree{};
};

// An entry of `launch:` or `launches:` in configs.yaml.
struct LaunchSetting {
  std::string value;  // as written, lists with commas; may contain secrets
  std::string from;   // "configs.yaml:12 launches.full"
};

// The launch defaults of configs.yaml, used to fill a LaunchRequest; launch() does not read them. nullopt or
// empty: not set.
struct LaunchDefaults {
  // All of the settings below, by key; variables as "env NAME".
  std::map<std::string, LaunchSetting> settings{};
  std::optional<std::string> command{};
  std::optional<RanksPerServer> nproc{};
  Env env{};
  std::vector<std::string> servers{};
  std::optional<Launcher> launcher{};
  TorchrunOptions torchrun{};
  std::optional<InitMethod> init_method{};
  std::optional<std::string> init_dir{};
  std::optional<bool> end_others{};
  std::optional<bool> follow{};
  std::optional<bool> rsync{};   // send the project first
  std::optional<bool> check{};   // first check whether the servers are ready for it
  std::optional<bool> pull{};    // copy its outputs to this machine when following it ends
  std::optional<bool> frozen{};  // see LaunchRequest
  std::optional<int> restarts{};
  std::vector<RestartCause> restart_on{};
  std::vector<int> no_restart_exit{};
  std::optional<int> min_servers{};
  std::optional<int> gpus{};  // for LaunchRequest::lease, like the next three
  std::optional<int> cpus{};
  std::optional<std::uint64_t> memory{};
  std::optional<bool> wait{};
  std::optional<std::chrono::seconds> hang_after{};
  std::optional<OnHang> on_hang{};
};

// A value of LaunchRequest::launcher.
struct LauncherInfo {
  Launcher launcher;
  std::string description;  // "a process a rank"
};
std::vector<LauncherInfo> launchers();

// One process of a plan; it becomes a job.
struct PlannedProcess {
  std::string server;
  int node_rank = 0;
  int rank = 0;  // for an agent: the first of its ranks
  int local_rank = 0;
  int ranks = 1;  // number of ranks that it runs: an agent of torchrun runs all ranks of its server
  bool is_torch_agent = false;  // an agent of torchrun, which needs src/server/torch_agent.py
  std::string command;
  std::string shown{};  // displayed instead of a command whose secrets can no longer be masked
  Env env{};            // may contain secrets
  Env defaults{};       // variables that are used if neither the server nor `env` sets them
  std::vector<std::string> tags{};
  std::vector<std::string> helpers{};    // helper programs of remote in its PATH
  std::string mpi_host{};                // the server's name for mpirun; "": not used by mpirun
  std::optional<Container> container{};  // nullopt: runs directly on the server
};

// The number of ranks that OnePer resulted in for a server.
struct ChosenRanks {
  std::string server;
  bool automatic = true;  // OnePer::automatic; false: `per` was requested
  int ranks = 0;
  OnePer per = OnePer::core;  // gpu or core
  UsableGpus gpus{};          // the GPUs that its ranks see, unless GPUs are leased
  UsableCpus cpus{};          // the processors that were counted, unless cores are leased
};

struct Plan {
  Launcher launcher = Launcher::ranks;
  std::string run_id;  // RUN_UUID, and Job::launch of its jobs
  std::string master_addr;
  int master_port = 0;
  int world_size = 0;
  std::vector<PlannedProcess> processes{};  // by rank
  // For spare servers, with restarts: started to replace others, with their ranks.
  std::vector<PlannedProcess> spares{};
  std::optional<int> needed{};        // number of processes that the launch needs to continue; nullopt: all
  std::string batch_script{};         // the script for Slurm; "": not under Slurm
  std::vector<ChosenRanks> chosen{};  // for servers without an explicit number of ranks
};

// The result of a launch. The event Launched has it before the call waits for the lifelines.
struct LaunchResult {
  Plan plan;
  std::vector<Job> jobs;      // by rank, with their keys; jobs on spare servers last
  std::vector<Error> errors;  // one per server or job that was not started, or whose state is unknown
};

// The outcome of a launch.
struct Verdict {
  // The job that failed first and by itself; the others ended as a consequence. nullopt: none.
  std::optional<Job> first;
  // Time until the next unsuccessful end; nullopt if nothing ended after it.
  std::optional<std::chrono::milliseconds> ahead;
  bool exact = false;                   // whether `ahead` is exact; otherwise it is in whole seconds
  std::vector<std::string> last_lines;  // of the stderr of `first`; untrusted text
  // The size of /dev/shm on its server when the launch began, if that was small.
  std::string shm{};
  bool gone = false;        // the server of `first` did not answer the request for these lines
  std::string lost_server;  // the others were stopped because this server was lost
  // The last report of a job on that server, or on the server of `first` if `gone` is set; nullopt: it
  // answers, or has never reported.
  std::optional<Instant> reported_at{};
  std::optional<Job> killed_first;  // this job was killed by a user, and the others failed because of that
  // The launch hung and was stopped for it: one of its jobs; its reason has the duration.
  std::optional<Job> hung;
  int total = 0;  // number of ranks, like all the following; a job that runs several counts each of them
  int succeeded = 0;
  int ended = 0;    // stopped by the launch, after the first failure
  int aborted = 0;  // others that failed
  int killed = 0;   // killed by a user
  int unknown = 0;  // unfinished: their server does not report
  // Servers that an elastic launch lost before it succeeded on the others; this is not a failure.
  std::vector<std::string> left;
  std::vector<Attempt> attempts;        // the failed attempts before this one; none: it is the first
  std::optional<NoRestart> no_restart;  // nullopt: it succeeded, or its restarts were used up
};

// ---- Operations on jobs ----

struct KillRequest {
  int signal = 15;                 // the first signal, in Linux's numbering
  std::chrono::seconds grace{10};  // time until KILL is sent
  // The origin of the stop: by_user (`text`; default: user@host), by_launch, after_rank or after_loss.
  JobReason by{.kind = JobReason::Kind::by_user};
};
struct KillResult {
  struct Entry {
    // killed: nothing is left; ended: it had already ended; none: it was never started there; survivors and
    // refused (nothing was done): see below
    enum class Outcome { killed, ended, none, survivors, refused };
    Job job;  // in its current state
    Outcome outcome = Outcome::none;
    int signalled = 0;                   // number of processes that got a signal
    std::vector<std::string> survivors;  // "pid 4121 (python3, user ada, state D)"; untrusted text
    std::string reason;                  // for refused; untrusted text
    // Processes that may belong to the job but were not touched, for lack of proof. Same form, with the
    // reason.
    std::vector<std::string> suspects;
  };
  std::vector<Entry> entries;  // by key; jobs whose server answered
  std::vector<Error> errors;   // servers that did not answer
};

struct CleanResult {
  struct Entry {
    Job job;
    bool removed = false;
    std::string reason;  // why it was not removed; untrusted text
  };
  std::vector<Entry> entries;  // by key
  std::vector<Error> errors;
};

// ---- Stacks of the ranks ----

struct ThreadStack {
  std::string name;
  std::vector<std::string> frames;  // innermost call first: "forward (model.py:12)"
};

// One process of a job.
struct RankStack {
  Job job;
  int pid = 0;
  std::optional<int> rank;           // of the process, or else of the job
  std::vector<ThreadStack> threads;  // main thread first; empty: no stack
  std::string why;                   // why there is none
  std::vector<std::string> kernel;   // then: the kernel's view of its threads
};

struct StackGroup {
  std::vector<RankStack> members;  // by rank; the stacks of their main threads are equal
};

struct StacksResult {
  std::vector<RankStack> ranks;  // by rank; also those without a stack
  std::vector<Job> ended;        // jobs that turned out to have no process
  std::vector<Error> errors;     // servers that did not answer
};

// Groups ranks by the frames of their main threads (or of all threads), smallest group first, because it is
// likely the one that differs. Only the base names of files count. Ranks without a stack are in no group.
std::vector<StackGroup> group_stacks(const std::vector<RankStack>& ranks, bool all_threads = false);

}  // namespace remote
