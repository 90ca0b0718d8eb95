#pragma once

#include <optional>
#include <string>
#include <vector>

#include <remote/launch.hpp>

// Plans a launch: turns the user's request and the facts about the servers into a list of processes to start.
// These are pure functions, which ask, start and read nothing, so that --dry-run shows what a launch does.
//
// Each launcher is one file: ranks.cpp starts one process per rank with torch's env:// variables,
// torchrun.cpp one agent per server, and mpi.cpp mpirun on the first server. launchers.cpp lists them.
// slurm.hpp plans jobs for Slurm.

namespace remote::launch {

struct LaunchSpec {
  std::string command;  // as the user gave it: a command line for the server's shell
  Launcher launcher = Launcher::ranks;
  std::string master_addr;
  int master_port = 0;
  std::string run_id;    // RUN_UUID; also the launch's id in job-list
  std::string commit{};  // REMOTE_COMMIT: the local project's commit; "" if git does not know it
  std::string
      rendezvous_key{};  // random key that signs the messages of torchrun's agents. Empty: no c10d rendezvous
  Env env{};             // the user's, in the given order; for duplicate names, the last one counts
  std::vector<std::string> tags{};  // the user's; if empty, words of the command and others are used
  InitMethod init_method = InitMethod::env;
  bool local_rank_arg = false;  // append --local_rank=N to the command
  bool mpi_over_ssh = false;    // see LaunchRequest
  bool restarts = false;  // all processes may be started again with different numbers: docs/resilience.md
  bool torch = true;      // it is a Python command: tagged torch; see with_python
  TorchrunOptions torchrun{};
};

// The mpirun in the project's environment on a server.
struct MpiRuntime {
  enum class Kind { open_mpi, hydra };  // hydra: MPICH and Intel MPI
  Kind kind = Kind::open_mpi;
  std::string version;     // "4.1.4"
  bool has_daemon = true;  // the daemon that it starts on other servers is on PATH too
  bool root = false;       // jobs there run as root
};

// One server of a launch, in order. The first one is the master.
struct Node {
  std::string server;
  int gpus = 0;
  int cpus = 0;
  int nproc = 1;                         // number of ranks on it
  int leased_cpus = 0;                   // cores that are leased to them; 0: unknown
  Env env{};                             // the server's variables; the user's (LaunchSpec::env) override them
  std::string init_url{};                // INIT_METHOD, with InitMethod::file
  std::optional<Container> container{};  // the container for its ranks
  std::optional<std::string> interface {};  // the interface toward the master, if known
  std::optional<MpiRuntime> mpi{};          // for a launcher that needs_mpi(); nullopt: not found
};

// Throws Error (usage) for impossible requests: no server, no command, a launcher that starts no ranks, or a
// variable that the launch itself sets or whose name is invalid.
Plan make_plan(const LaunchSpec& spec, const std::vector<Node>& nodes);

// Whether LaunchSpec::master_port must be a free port on the first server, and whether Node::mpi must be
// known. Both throw Error (usage) for a launcher that starts no ranks (`sweep`).
bool needs_port(Launcher launcher);
bool needs_mpi(Launcher launcher);

// The number of ranks on a server where they see this many GPUs; 0 for OnePer::gpu without GPUs.
int number_of_ranks(const RanksPerServer& ranks, int gpus, int cpus);

}  // namespace remote::launch
