#pragma once

#include "launch/plan.hpp"

// What a launcher is, and what the launchers share. Only src/launch includes it.

namespace remote::launch {

// How a launcher starts the ranks: which processes, on which servers, with which variables.
struct Planner {
  LauncherInfo info;
  // Whether it needs a free port on the first server (MASTER_PORT); without, LaunchSpec::master_port is 0.
  bool needs_port;
  // The processes of a launch, by rank. It may plan fewer than one a server, such as one process that reaches
  // the other servers by itself. Throws Error (usage) for a command that it cannot start.
  std::vector<PlannedProcess> (*plan)(const LaunchSpec& spec, const std::vector<Node>& nodes, int world_size);
  // How many of the servers the launch needs to go on; nullptr, and nothing: all. Throws Error (usage).
  // A launcher without it takes no TorchrunOptions.
  std::optional<int> (*needed)(const LaunchSpec& spec, const std::vector<Node>& nodes) = nullptr;
  // Whether Node::mpi is to be found out before the plan.
  bool needs_mpi = false;
};

// Throws Error (usage) for one that starts no ranks (`sweep`).
const Planner& planner_of(Launcher launcher);

// make_plan() (plan.hpp) with this planner, whatever the spec names.
Plan make_plan(const LaunchSpec& spec, const std::vector<Node>& nodes, const Planner& planner);

// The variables of a process in order, each name once.
class EnvBuilder {
 public:
  void set(const std::string& name, const std::string& value);
  void set(const std::string& name, int value) { set(name, std::to_string(value)); }
  // Of a variable that neither the user nor the server sets (PlannedProcess::defaults).
  void set_default(const Env& user, const std::string& name, const std::string& value);
  void give_to(PlannedProcess& process) {
    process.env = std::move(env_);
    process.defaults = std::move(defaults_);
  }

 private:
  Env env_;
  Env defaults_;
};

// What every process of a server gets but for its rank: thread count, buffering and interfaces where the user
// set none, and then what the user set.
void add_common(EnvBuilder& env, const LaunchSpec& spec, const Node& node);

// Whether the launch itself sets this variable for each rank.
bool is_reserved(std::string_view name);

// What starts torchrun's agent on a node of Slurm; the rest is in the variables that remote-agent sets there
// (agent/slurm/slurm_rank.hpp). Throws Error (usage) for a command that an agent cannot start.
std::string torchrun_command(const LaunchSpec& spec, int nodes, int nproc);

// The tags of a process: the user's or the default ones, and `master` for rank 0.
std::vector<std::string> tags_of(const LaunchSpec& spec, bool master);

}  // namespace remote::launch
