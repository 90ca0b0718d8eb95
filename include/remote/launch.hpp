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

// A distributed launch: what is asked for, what is planned, what came of it.

namespace remote {

// Environment variables, in order; of two with one name the later counts.
using Env = std::vector<std::pair<std::string, std::string>>;

// Set to 1 in the Env of a launch or job that has `enable_stacks`: an exception that nobody catches keeps its
// rank for Project::attach(). An Error (usage) with Slurm.
inline constexpr const char* pdb_on_error_variable = "REMOTE_PDB_ON_ERROR";

enum class ContainerEngine { docker, podman, apptainer };
// Its program: "docker".
std::string_view to_string(ContainerEngine engine);
std::optional<ContainerEngine> parse_container_engine(std::string_view name);

// When an image is fetched before a start.
enum class ImagePull { missing, always, never };
// Takes the word of configs.yaml: "missing".
std::optional<ImagePull> parse_image_pull(std::string_view name);

// The container that a process runs in.
struct Container {
  std::optional<ContainerEngine> engine{};  // nullopt: the first that has the image, or else that works
  std::string image{};                      // as the engine names it; for apptainer also a file on the server
  std::vector<std::string> args{};  // options of the engine's `run` (`exec` of apptainer), each a word
  std::string workdir{};            // where the command runs; relative: in the project's folder; empty: there
  ImagePull pull = ImagePull::missing;
};

// How many ranks a server gets: a number, or one for each of its GPUs or cores. automatic: one for each GPU,
// or without GPUs one for each core.
enum class OnePer { automatic, gpu, core };
using RanksPerServer = std::variant<OnePer, int>;
inline constexpr int most_ranks_per_server = 4096;
// In the form of --nproc-per-node: "auto", "gpu", "cpu", "4".
std::string to_string(const RanksPerServer& ranks);
// nullopt: no such word, and no number from 1 to most_ranks_per_server.
std::optional<RanksPerServer> parse_ranks_per_server(std::string_view text);

// A server of a launch, as a hostfile names it.
struct LaunchHost {
  std::string name;            // the server's name in configs.yaml, or its hostname or internal_address
  std::optional<int> slots{};  // how many ranks it gets; nullopt: LaunchRequest::nproc
  std::string where{};         // for messages: "hosts.txt:3"
  // GPUs that its ranks may use, by index, or with `without_gpus` those that they may not. Empty: all that
  // configs.yaml leaves to them. CUDA_VISIBLE_DEVICES follows, and where `slots` does not say it, the number
  // of ranks.
  std::vector<int> gpus{};
  bool without_gpus = false;
};

// How the agents of torchrun find each other; static_: without names, and without restarts of nodes.
enum class RendezvousMethod { static_, c10d };
// The word of --rdzv: "static".
std::string_view to_string(RendezvousMethod method);
std::optional<RendezvousMethod> parse_rendezvous(std::string_view name);

// How many servers a launch needs, and has.
struct NodeRange {
  int least = 1;
  int most = 1;
  bool operator==(const NodeRange&) const = default;
};
// "2" or "1:4".
std::string to_string(const NodeRange& nodes);
std::optional<NodeRange> parse_node_range(std::string_view text);

// What the launcher torchrun takes besides.
struct TorchrunOptions {
  // Default: c10d where `nodes` or `max_restarts` ask for it, else static_.
  std::optional<RendezvousMethod> rendezvous{};
  // `most` must be the number of its servers. Default: all.
  std::optional<NodeRange> nodes{};
  std::optional<int> max_restarts{};  // how often the workers start again after a failure; default: 0
};

// How the ranks find each other. env: by MASTER_ADDR and MASTER_PORT alone, torch's default. The others also
// set INIT_METHOD, for programs that hand it to init_process_group(): tcp: "tcp://MASTER_ADDR:MASTER_PORT";
// file: "file:///…", a file of the launch's own that all servers share.
enum class InitMethod { env, tcp, file };
// The word of configs.yaml: "env".
std::string_view to_string(InitMethod method);
std::optional<InitMethod> parse_init_method(std::string_view name);

// What an attempt of a launch can end by: a rank that exited, that a signal ended, or that the kernel ended
// for want of memory; a server that was lost; standing still (LaunchRequest::hang_after). lifeline: the first
// server's lifeline died and was started again; that is never asked for.
enum class RestartCause { exit, signal, oom, lost, hang, lifeline };
// The cause's name, as configs.yaml has it: "oom".
std::string_view to_string(RestartCause cause);
std::optional<RestartCause> parse_restart_cause(std::string_view name);

// Why a launch that has restarts left did not start again.
enum class NoRestart {
  cause,             // --restart-on does not name what failed
  exit_code,         // --no-restart-exit names the exit code
  repeated,          // the same rank failed twice at the same place, without a newer checkpoint in between
  stopped,           // a user stopped a job, or a job's supervisor is gone
  too_few_servers,   // fewer than --min-servers are left
  unreached,         // a server never reached the first one, so its ranks may still run
  unfinished,        // an attempt could not be ended, or the next one not started, on a server
  coordinator_lost,  // the first server is lost, and no other one decides about restarts
  hang,              // it hung, and --on-hang is not `restart`
};
// Its name in events and records: "too_few_servers".
std::string_view to_string(NoRestart reason);
std::optional<NoRestart> parse_no_restart(std::string_view name);

// What is done about a launch that stands still: nothing, but that it is told; its ranks are ended; they
// start again, as after a failure. What Project::why() needs is kept before that.
enum class OnHang { leave, kill, restart };
// The word of configs.yaml: "leave".
std::string_view to_string(OnHang action);
std::optional<OnHang> parse_on_hang(std::string_view name);

// What starts the ranks: launchers() describes them. `sweep` is in records of sweeps alone.
enum class Launcher { ranks, torchrun, mpi, sweep };
// The word of --launcher: "ranks".
std::string_view to_string(Launcher launcher);
std::optional<Launcher> parse_launcher(std::string_view name);

struct LaunchRequest {
  std::string command;                 // what every rank runs: a line for the server's shell
  std::vector<std::string> servers{};  // names or globs; none: all of the project
  // In place of `servers`, in the order of the ranks; see Project::resolve_hosts().
  std::vector<LaunchHost> hosts{};
  RanksPerServer nproc = OnePer::automatic;
  std::optional<int> nodes{};        // for a login node of Slurm: how many nodes; default: 1
  bool requeue = false;              // for a login node of Slurm: see JobRequest
  std::vector<Job> after{};          // for a login node of Slurm: see JobRequest
  std::optional<int> master_port{};  // default: a free one
  Env env{};
  // The image of the container that the ranks run in, in place of the one of configs.yaml; "none": no
  // container.
  std::optional<std::string> image{};
  std::vector<std::string> tags{};  // default: the words of the command and more
  Launcher launcher = Launcher::ranks;
  TorchrunOptions torchrun{};  // an error with another launcher
  // The launcher mpi: its mpirun reaches the other servers by the ssh that the servers have, and not by the
  // lifeline. An error with another launcher.
  bool mpi_over_ssh = false;
  InitMethod init_method = InitMethod::env;
  // For InitMethod::file: the folder of the file, which all servers share: absolute, "~/…", or within the
  // project's folder. "": the folder of the jobs, which servers with one home share.
  std::string init_dir{};
  bool python = true;                   // a bare .py file gets `python` in front; tagged torch
  bool local_rank_arg = false;          // append --local_rank=N to the command
  std::optional<bool> enable_stacks{};  // see JobRequest; default: where `python` is set
  bool tell_changes = true;             // tell what changed here since it was sent: see CodeChanged
  bool verify_sync = false;             // start only if the project is the same on all servers
  bool check = true;       // start only if nothing is found by which it would fail: see CheckWarned
  bool end_others = true;  // when a rank fails, end the others
  std::chrono::seconds failure_grace{5};  // what the others get to exit by themselves
  std::chrono::seconds lost_after{60};    // a server that is silent to the others for so long counts as lost
  // So often at most, all ranks start again after a failure, once nothing of them is left:
  // docs/resilience.md.
  int restarts = 0;
  std::vector<RestartCause> restart_on{};  // after what; none: any
  // Exit codes of a rank after which they do not.
  std::vector<int> no_restart_exit{};
  // How many servers are enough to start again when others are lost. nullopt: all are needed.
  std::optional<int> min_servers{};
  // When no rank has written or computed for so long, the launch stands still: docs/resilience.md. 0: nobody
  // looks. An Error (usage) with Slurm and with containers.
  std::chrono::seconds hang_after{0};
  OnHang on_hang = OnHang::leave;
  // Wait, two seconds at most, for the servers' word whether they reach the first one: see NoLifeline.
  // follow() watches for it too.
  bool await_lifelines = true;
  // What it has for itself on each of its servers. OnePer::automatic then means one rank for each leased GPU,
  // or else for each leased core.
  LeaseRequest lease{};
  // In its record (remote/history.hpp). A name could not be taken for a key: it begins with a letter or '_'.
  std::string name{};
  std::string note{};
  // Run in a tree of its own on each server, which no later sync changes: docs/frozen.md. nullopt: no.
  std::optional<bool> frozen{};
  // The digest of an earlier launch's tree to run in (the fact `tree` of its record); implies `frozen`.
  // "": what was last sent.
  std::string tree{};
};

// A key of `launch:` or `launches:` as configs.yaml has it.
struct LaunchSetting {
  std::string value;  // as written, a list with commas; may hold secrets
  std::string from;   // "configs.yaml:12 launches.full"
};

// What configs.yaml says of launches, for those who make a LaunchRequest; launch() does not look at it.
// nullopt and empty: it says nothing.
struct LaunchDefaults {
  std::map<std::string, LaunchSetting> settings{};  // all that follows, by key; variables as "env NAME"
  std::optional<std::string> command{};
  std::optional<RanksPerServer> nproc{};
  Env env{};
  std::vector<std::string> servers{};
  std::optional<Launcher> launcher{};
  TorchrunOptions torchrun{};
  std::optional<InitMethod> init_method{};
  std::optional<std::string> init_dir{};
  std::optional<bool> end_others{};
  std::optional<bool> follow{};  // follow the launch
  std::optional<bool> rsync{};   // send the project first
  std::optional<bool> check{};   // look first whether the servers are fit for it
  std::optional<bool> pull{};    // copy its outputs here when following it ends
  std::optional<bool> frozen{};  // see LaunchRequest
  std::optional<int> restarts{};
  std::vector<RestartCause> restart_on{};
  std::vector<int> no_restart_exit{};
  std::optional<int> min_servers{};
  std::optional<int> gpus{};  // of LaunchRequest::lease, as the next three
  std::optional<int> cpus{};
  std::optional<std::uint64_t> memory{};
  std::optional<bool> wait{};
  std::optional<std::chrono::seconds> hang_after{};
  std::optional<OnHang> on_hang{};
};

// What LaunchRequest::launcher takes.
struct LauncherInfo {
  Launcher launcher;
  std::string description;  // "a process a rank"
};
std::vector<LauncherInfo> launchers();

// One process of a plan; it becomes a job.
struct PlannedProcess {
  std::string server;
  int node_rank = 0;
  int rank = 0;  // of an agent: the first of its ranks
  int local_rank = 0;
  int ranks = 1;                // how many ranks it stands for: an agent of torchrun has all of its server
  bool is_torch_agent = false;  // of torchrun; src/server/torch_agent.py goes along with it
  std::string command;
  std::string shown{};  // for people, in place of a command whose secrets are not to be found any more
  Env env{};            // may hold secrets
  Env defaults{};       // for variables that neither the server nor `env` sets
  std::vector<std::string> tags{};
  std::vector<std::string> helpers{};    // programs of remote's own that it finds on its PATH
  std::string mpi_host{};                // what mpirun calls its server; "": no mpirun has to do with it
  std::optional<Container> container{};  // nullopt: it runs on the server itself
};

// What OnePer chose for a server.
struct ChosenRanks {
  std::string server;
  bool automatic = true;  // OnePer::automatic; else `per` was asked for
  int ranks = 0;
  OnePer per = OnePer::core;  // gpu or core
  UsableGpus gpus{};          // that its ranks see, unless they are leased
  UsableCpus cpus{};          // that were counted there, unless the ranks' cores are leased
};

struct Plan {
  Launcher launcher = Launcher::ranks;
  std::string run_id;  // RUN_UUID, and Job::launch of its jobs
  std::string master_addr;
  int master_port = 0;
  int world_size = 0;
  std::vector<PlannedProcess> processes{};  // by rank
  // On spare servers, with restarts: started when they replace others, with the ranks of those.
  std::vector<PlannedProcess> spares{};
  std::optional<int> needed{};        // processes that the launch needs to continue; nullopt: all
  std::string batch_script{};         // what Slurm is given; "": there is no Slurm
  std::vector<ChosenRanks> chosen{};  // servers without a given number of ranks
};

// Also told (Launched) before the lifelines are awaited.
struct LaunchResult {
  Plan plan;
  std::vector<Job> jobs;      // by rank, with their keys; last those on spare servers
  std::vector<Error> errors;  // a server or a job each that was not started, or of which nothing is known
};

// What became of a launch.
struct Verdict {
  // The job that failed by itself, before all others; the others' ends followed from it. nullopt: none did.
  std::optional<Job> first;
  // How long before the next end that was no success; nullopt when nothing ended after it.
  std::optional<std::chrono::milliseconds> ahead;
  bool exact = false;                   // whether `ahead` is exact; else it is in whole seconds
  std::vector<std::string> last_lines;  // of what `first` wrote to its stderr; foreign text
  // The size of /dev/shm on its server when the launch began, if that was small.
  std::string shm{};
  bool gone = false;        // the server of `first` did not answer when it was asked for these lines
  std::string lost_server;  // the others ended because this server was lost
  // The last report of a job from that server, or from that of `first` if that is gone; nullopt: it answers,
  // or has never reported.
  std::optional<Instant> reported_at{};
  std::optional<Job> killed_first;  // somebody ended this job, and the others failed because of that
  // The launch stood still and was ended for that: one of its jobs, whose reason has for how long.
  std::optional<Job> hung;
  int total = 0;  // ranks, as all that follow: a job that runs several counts for each of them
  int succeeded = 0;
  int ended = 0;    // by the launch, after the first failure
  int aborted = 0;  // others that failed
  int killed = 0;   // by somebody else
  int unknown = 0;  // unfinished: their server does not tell
  // Servers that an elastic launch went on without, until it succeeded on the others. Then there is no
  // failure.
  std::vector<std::string> left;
  std::vector<Attempt> attempts;  // that failed before the one that all this is about; none: it is the first
  std::optional<NoRestart> no_restart;  // absent: it succeeded, or no restart was left
};

// ---- What is done to jobs ----

struct KillRequest {
  int signal = 15;                 // the first one, by Linux's numbers
  std::chrono::seconds grace{10};  // until KILL follows
  // Who asks: by_user (`text`; default: user@host), by_launch, after_rank or after_loss.
  JobReason by{.kind = JobReason::Kind::by_user};
};
struct KillResult {
  struct Entry {
    // killed: nothing is left; ended: it had ended before; none: it was never started there; survivors and
    // refused (nothing was done): see below
    enum class Outcome { killed, ended, none, survivors, refused };
    Job job;  // as it is now
    Outcome outcome = Outcome::none;
    int signalled = 0;                   // how many processes got a signal
    std::vector<std::string> survivors;  // "pid 4121 (python3, user ada, state D)"; foreign text
    std::string reason;                  // for refused; foreign text
    // Processes that may be of the job and were left alone, for nothing proves it: the same, and why.
    std::vector<std::string> suspects;
  };
  std::vector<Entry> entries;  // by key; jobs whose server answered
  std::vector<Error> errors;   // servers that did not
};

struct CleanResult {
  struct Entry {
    Job job;
    bool removed = false;
    std::string reason;  // why it stays; foreign text
  };
  std::vector<Entry> entries;  // by key
  std::vector<Error> errors;
};

// ---- Where the ranks stand ----

struct ThreadStack {
  std::string name;
  std::vector<std::string> frames;  // the innermost call first: "forward (model.py:12)"
};

// One process of a job.
struct RankStack {
  Job job;
  int pid = 0;
  std::optional<int> rank;           // the process's, else the job's
  std::vector<ThreadStack> threads;  // the main thread first; empty where no stack could be had
  std::string why;                   // why there is none
  std::vector<std::string> kernel;   // then what the kernel says of its threads
};

struct StackGroup {
  std::vector<RankStack> members;  // by rank; their main threads stand at the same place
};

struct StacksResult {
  std::vector<RankStack> ranks;  // by rank; also those without a stack
  std::vector<Job> ended;        // jobs that turned out to have no process
  std::vector<Error> errors;     // servers that did not answer
};

// Groups ranks by the frames of their main threads (or of all threads), the smallest group first: the odd one
// out. File names count without their folders. A rank without a stack is in no group.
std::vector<StackGroup> group_stacks(const std::vector<RankStack>& ranks, bool all_threads = false);

}  // namespace remote
