#pragma once

#include "launch/plan.hpp"

// The definition of a launcher, and code shared by the launchers. Only src/launch includes it.

namespace remote::launch {

// How a launcher starts the ranks: the processes, their servers and their variables.
struct Planner {
  LauncherInfo info;
  // Whether it needs a free port on the first server (MASTER_PORT). If not, LaunchSpec::master_port is 0.
  bool needs_port;
  // Returns the processes of a launch, by rank. There may be fewer than one per server, for example one
  // process that reaches the other servers by itself. Throws Error (usage) for a command that it cannot
  // start.
  std::vector<PlannedProcess> (*plan)(const LaunchSpec& spec, const std::vector<Node>& nodes, int world_size);
  // The number of servers that the launch needs to continue; all if it is nullptr or returns nullopt. Throws
  // Error (usage). A launcher without it does not accept TorchrunOptions.
  std::optional<int> (*needed)(const LaunchSpec& spec, const std::vector<Node>& nodes) = nullptr;
  // Whether Node::mpi must be determined before planning.
  bool needs_mpi = false;
};

// Throws Error (usage) for a launcher that starts no ranks (`sweep`).
const Planner& planner_of(Launcher launcher);

// make_plan() (plan.hpp) with this planner, regardless of the spec's launcher.
Plan make_plan(const LaunchSpec& spec, const std::vector<Node>& nodes, const Planner& planner);

// The variables of a process in order, without duplicate names.
class EnvBuilder {
 public:
  void set(const std::string& name, const std::string& value);
  void set(const std::string& name, int value) { set(name, std::to_string(value)); }
  // Sets a default, for a variable that neither the user nor the server sets (PlannedProcess::defaults).
  void set_default(const Env& user, const std::string& name, const std::string& value);
  void give_to(PlannedProcess& process) {
    process.env = std::move(env_);
    process.defaults = std::move(defaults_);
  }

 private:
  Env env_;
  Env defaults_;
};

// Adds the variables that all processes of a server share: thread count, buffering and interfaces unless the
// user sets them, then the user's variables.
void add_common(EnvBuilder& env, const LaunchSpec& spec, const Node& node);

// Whether the launch itself sets this variable for each rank.
bool is_reserved(std::string_view name);

// The command that starts torchrun's agent on a Slurm node. Everything else is in variables that remote-agent
// sets there (agent/slurm/slurm_rank.hpp). Throws Error (usage) for a command that an agent cannot start.
std::string torchrun_command(const LaunchSpec& spec, int nodes, int nproc);

// The tags of a process: the user's or the default ones, and `master` for rank 0.
std::vector<std::string> tags_of(const LaunchSpec& spec, bool master);

}  // namespace remote::launch
