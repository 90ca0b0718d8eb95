// The launcher "ranks": one process per rank, which finds its peers through torch's env:// variables.
#include <fmt/format.h>

#include "base/command.hpp"
#include "launch/launchers.hpp"

namespace remote::launch {

namespace {

std::vector<PlannedProcess> plan_ranks(const LaunchSpec& spec, const std::vector<Node>& nodes,
                                       int world_size) {
  std::vector<PlannedProcess> processes;
  const std::string command = spec.torch ? with_python(spec.command) : spec.command;
  int rank = 0;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const int node_rank = static_cast<int>(n);
    for (int local = 0; local < nodes[n].nproc; ++local, ++rank) {
      PlannedProcess process;
      process.server = nodes[n].server;
      process.node_rank = node_rank;
      process.rank = rank;
      process.local_rank = local;
      process.command = command;
      if (spec.local_rank_arg) {
        process.command += fmt::format(" --local_rank={}", local);
      }
      EnvBuilder env;
      env.set("MASTER_ADDR", spec.master_addr);
      env.set("MASTER_PORT", spec.master_port);
      env.set("WORLD_SIZE", world_size);
      env.set("RANK", rank);
      env.set("LOCAL_RANK", local);
      env.set("LOCAL_WORLD_SIZE", nodes[n].nproc);
      env.set("NODE_RANK", node_rank);
      env.set("GROUP_RANK", node_rank);
      env.set("ROLE_RANK", rank);  // like torchrun with one role
      env.set("ROLE_WORLD_SIZE", world_size);
      env.set("GROUP_WORLD_SIZE", static_cast<int>(nodes.size()));
      env.set("TORCHELASTIC_RUN_ID", spec.run_id);
      env.set("RUN_UUID", spec.run_id);
      add_common(env, spec, nodes[n]);
      env.give_to(process);
      process.tags = tags_of(spec, rank == 0);
      processes.push_back(std::move(process));
    }
  }
  return processes;
}

}  // namespace

extern const Planner ranks{{Launcher::ranks, "a process a rank"}, true, plan_ranks};

}  // namespace remote::launch
