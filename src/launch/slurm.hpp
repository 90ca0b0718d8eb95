#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/plan.hpp"

// Planning what Slurm is to run: one job of Slurm, with all ranks of a launch or with a single command. Pure,
// as plan.hpp.

namespace remote::launch {

struct SlurmSpec {
  std::string program;               // the copy of the programs for jobs, from the job's folder
  std::vector<std::string> options;  // of sbatch, for all jobs of the login node: "--partition=gpu"
  std::string login;                 // its name in configs.yaml
  int nodes = 1;
  int nproc = 1;                         // ranks a node
  int master_port = 0;                   // 0: a free one, which the job finds itself
  std::optional<int> failure_grace;      // seconds between the failure of a rank and the end of the others;
                                         // nullopt: they are left alone
  bool requeue = false;                  // Slurm may run it again, where a node fails or it is preempted
  std::optional<Container> container{};  // what each process of the launch runs in
};

// The ranks of a node: a number; OnePer::gpu is `gpus_per_node`, 0 where that is not known. Throws Error
// (usage) where it is not known: nobody knows yet on which nodes it will run.
int slurm_nproc(const RanksPerServer& ranks, int gpus_per_node, const std::string& login);

// The launch as one process, which stands for all ranks, and its batch script (Plan::batch_script). Throws
// Error (usage), as make_plan() does, also for a launcher that does not go with Slurm.
Plan make_slurm_plan(const LaunchSpec& spec, const SlurmSpec& slurm, const Env& server_env);

// The batch script of a single command on one node. With `tasks`, numbers and the ids of their jobs, it is
// that of an array, of which at most `limit` run at the same time (0: any number). `program`: see SlurmSpec.
std::string slurm_job_batch(const std::string& program, const std::vector<std::string>& options, bool requeue,
                            const std::vector<std::pair<int, std::string>>& tasks = {}, int limit = 0);

}  // namespace remote::launch
