#pragma once

#include <optional>
#include <string>
#include <vector>

#include <remote/launch.hpp>

// Planning a launch: from what the user asked and what is known of the servers to the list of processes to
// start. Pure: nothing is asked, started or read here, so that --dry-run shows what a launch does.
//
// A launcher is one file: ranks.cpp starts one process a rank with torch's env:// variables, torchrun.cpp one
// agent a server, mpi.cpp mpirun on the first server. launchers.cpp lists them. What Slurm is to run is
// planned by slurm.hpp.

namespace remote::launch {

struct LaunchSpec {
  std::string command;  // as the user gave it: a line for the server's shell
  Launcher launcher = Launcher::ranks;
  std::string master_addr;
  int master_port = 0;
  std::string run_id;            // RUN_UUID; also the launch's id in job-list
  std::string commit{};          // REMOTE_COMMIT: of the project here; "" if git does not know it
  std::string rendezvous_key{};  // random; signs what torchrun's agents say. Empty: no c10d rendezvous
  Env env{};                     // the user's, in the order given; of two of the same name the later counts
  std::vector<std::string> tags{};  // the user's; none: the words of the command and more
  InitMethod init_method = InitMethod::env;
  bool local_rank_arg = false;  // append --local_rank=N to the command
  bool mpi_over_ssh = false;    // see LaunchRequest
  bool restarts = false;        // all processes may start again, with other numbers: docs/resilience.md
  bool torch = true;            // a Python command: tagged torch; see with_python
  TorchrunOptions torchrun{};
};

// The mpirun of a server, as it is found in the project's environment there.
struct MpiRuntime {
  enum class Kind { open_mpi, hydra };  // hydra: MPICH's, and Intel MPI's
  Kind kind = Kind::open_mpi;
  std::string version;     // "4.1.4"
  bool has_daemon = true;  // what it starts on other servers is on the PATH too
  bool root = false;       // jobs there run as root
};

// One server of a launch, in order: the first is the master.
struct Node {
  std::string server;
  int gpus = 0;
  int cpus = 0;
  int nproc = 1;                            // ranks on it
  int leased_cpus = 0;                      // cores that they have for themselves; 0: not known
  Env env{};                                // its own variables; the user's (LaunchSpec::env) override them
  std::string init_url{};                   // INIT_METHOD, with InitMethod::file
  std::optional<Container> container{};     // what its ranks run in
  std::optional<std::string> interface {};  // the one that leads to the master, where that is known
  std::optional<MpiRuntime> mpi{};          // for a launcher that needs_mpi(); nullopt: there is none
};

// Throws Error (usage) for what cannot be: no server, no command, a launcher that starts no ranks, a variable
// that is set by the launch itself or has no valid name.
Plan make_plan(const LaunchSpec& spec, const std::vector<Node>& nodes);

// Whether LaunchSpec::master_port must be a free port on the first server, and whether Node::mpi must be
// known. Both throw Error (usage) for a launcher that starts no ranks (`sweep`).
bool needs_port(Launcher launcher);
bool needs_mpi(Launcher launcher);

// How many ranks a server gets on which they see so many GPUs; 0 for OnePer::gpu without GPUs.
int number_of_ranks(const RanksPerServer& ranks, int gpus, int cpus);

}  // namespace remote::launch
