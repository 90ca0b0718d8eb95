#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/plan.hpp"

// Plans jobs for Slurm: one Slurm job with all ranks of a launch, or with a single command. Pure functions,
// like plan.hpp.

namespace remote::launch {

struct SlurmSpec {
  std::string program;               // the copy of the programs for jobs, relative to the job's folder
  std::vector<std::string> options;  // sbatch options for all jobs of the login node: "--partition=gpu"
  std::string login;                 // the login node's name in configs.yaml
  int nodes = 1;
  int nproc = 1;                         // ranks per node
  int master_port = 0;                   // 0: the job itself finds a free one
  std::optional<int> failure_grace;      // seconds between the failure of a rank and stopping the others;
                                         // nullopt: they are not stopped
  bool requeue = false;                  // Slurm may run it again if a node fails or it is preempted
  std::optional<Container> container{};  // the container for each process of the launch
};

// The number of ranks per node. OnePer::gpu means `gpus_per_node`, which is 0 if unknown. Throws Error
// (usage) if the number is unknown, because the nodes are not chosen yet.
int slurm_nproc(const RanksPerServer& ranks, int gpus_per_node, const std::string& login);

// The launch as a single process that stands for all ranks, with its batch script (Plan::batch_script).
// Throws Error (usage) like make_plan(), and for a launcher that does not support Slurm.
Plan make_slurm_plan(const LaunchSpec& spec, const SlurmSpec& slurm, const Env& server_env);

// The batch script of a single command on one node. With `tasks`, which maps numbers to the ids of their
// jobs, it is that of an array, of which at most `limit` tasks run at the same time (0: any number).
// `program`: see SlurmSpec.
std::string slurm_job_batch(const std::string& program, const std::vector<std::string>& options, bool requeue,
                            const std::vector<std::pair<int, std::string>>& tasks = {}, int limit = 0);

}  // namespace remote::launch
