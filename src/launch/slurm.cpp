#include "launch/slurm.hpp"

#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/strings.hpp"
#include "launch/launchers.hpp"

namespace remote::launch {
namespace {

struct Batch {
  int nodes = 1;
  int tasks = 1;  // on each node
  int cpus = 1;   // for each task
  bool requeue = false;
  std::string array{};
};

// A batch script that runs the agent's slurm-job with these words; srun calls it with other words for each
// process. If the file system is mounted noexec, the agent runs from memory.
std::string batch_script(const std::string& program, const std::vector<std::string>& options,
                         const Batch& batch, const std::string& words) {
  std::string text =
      "#!/bin/sh\n# Made by remote, and submitted from the job's folder. Slurm runs it on the first node.\n";
  const auto option = [&](const std::string& line) { text += "#SBATCH " + line + "\n"; };
  option(fmt::format("--nodes={}", batch.nodes));
  option(fmt::format("--ntasks-per-node={}", batch.tasks));
  if (batch.cpus > 1) {
    option(fmt::format("--cpus-per-task={}", batch.cpus));
  }
  option(batch.requeue ? "--requeue" : "--no-requeue");
  if (batch.array.empty()) {
    option("--output=job.out");
    option("--error=job.err");
  } else {
    option(batch.array);
    option("--output=/dev/null");
  }
  option("--open-mode=append");
  for (const std::string& line : options) {
    option(line);  // the later option wins
  }
  text += "agent=" + program + "/remote-agent\n";
  text +=
      "if ! [ -f $agent ]; then\n"
      "  echo \"remote: node $(hostname) does not see the project's folder; it must lie where all nodes see "
      "it\" >&2\n"
      "  exit 127\n"
      "fi\n";
  text += "[ $# != 0 ] || set -- " + words + "\n";
  text +=
      "$agent try 2>/dev/null\n"
      "[ $? != 42 ] || exec $agent slurm-job \"$@\"\n";
  return text + "exec python3 -B -S -I " + program + "/python/run_agent.py $agent slurm-job \"$@\"\n";
}

}  // namespace

int slurm_nproc(const RanksPerServer& ranks, int gpus_per_node, const std::string& login) {
  if (const int* number = std::get_if<int>(&ranks)) {
    return *number;
  }
  const bool by_core = ranks == RanksPerServer(OnePer::core);
  if (gpus_per_node == 0 || by_core) {
    throw Error::usage(
        "launch", "the number of ranks per node is unknown, because Slurm chooses the nodes later",
        "give a number of ranks per node" +
            (by_core ? "" : fmt::format(", or gpus_per_node of server '{}' in configs.yaml", login)));
  }
  return gpus_per_node;
}

Plan make_slurm_plan(const LaunchSpec& spec, const SlurmSpec& slurm, const Env& server_env) {
  const bool agents = spec.launcher == Launcher::torchrun;
  if (spec.launcher != Launcher::ranks && !agents) {
    throw Error::usage(
        fmt::format("cannot launch with {} under Slurm", to_string(spec.launcher)),
        fmt::format("server '{}' is a login node, which supports only ranks and torchrun", slurm.login),
        "choose one of these, or servers without a scheduler");
  }
  // Slurm chooses the nodes, so everything that differs between them is in variables that the agent sets.
  LaunchSpec ranks = spec;
  ranks.launcher = Launcher::ranks;
  ranks.master_addr = "set-by-the-job";
  ranks.master_port = slurm.master_port == 0 ? 1 : slurm.master_port;
  ranks.local_rank_arg = false;
  if (agents) {
    ranks.command = torchrun_command(spec, slurm.nodes, slurm.nproc);
    ranks.torch = false;
    ranks.tags = tags_of(spec, false);
  }
  Node node{.server = slurm.login, .nproc = slurm.nproc, .env = server_env, .container = slurm.container};
  Plan plan = make_plan(ranks, {node});
  PlannedProcess process = std::move(plan.processes.front());
  Env common;
  for (auto& [name, value] : process.env) {
    const bool of_job = name == "MASTER_ADDR" && value == ranks.master_addr;
    const bool of_agent = agents && name == "TORCHELASTIC_RUN_ID";  // torchrun sets it
    if (!of_job && !of_agent && (name == "RUN_UUID" || !is_reserved(name))) {
      common.emplace_back(std::move(name), std::move(value));
    }
  }
  if (agents) {
    common.emplace_back("PET_RDZV_ID", spec.run_id);  // like in torchrun.cpp
  }
  process.env = std::move(common);
  process.ranks = slurm.nodes * slurm.nproc;
  process.is_torch_agent = agents;
  if (spec.local_rank_arg) {
    process.command += " --local_rank=\"$LOCAL_RANK\"";
  }
  plan.launcher = spec.launcher;
  plan.master_addr.clear();
  plan.master_port = slurm.master_port;
  plan.world_size = process.ranks;
  plan.processes = {std::move(process)};
  const std::string grace = slurm.failure_grace ? std::to_string(*slurm.failure_grace) : "-";
  plan.batch_script = batch_script(
      slurm.program, slurm.options,
      {slurm.nodes, agents ? 1 : slurm.nproc, agents ? slurm.nproc : 1, slurm.requeue},
      fmt::format("{} {} {} {}", agents ? "agents" : "ranks", slurm.nproc, slurm.master_port, grace));
  return plan;
}

std::string slurm_job_batch(const std::string& program, const std::vector<std::string>& options, bool requeue,
                            const std::vector<std::pair<int, std::string>>& tasks, int limit) {
  if (tasks.empty()) {
    return batch_script(program, options, {.requeue = requeue}, "one");
  }
  // The script is submitted from the folder of all jobs; each task changes to its own folder.
  std::vector<std::string> numbers;
  std::string cases;
  for (const auto& [number, id] : tasks) {
    numbers.push_back(std::to_string(number));
    cases += fmt::format("  {}) cd {} ;;\n", number, id);
  }
  std::string array = "--array=" + join(numbers, ",");
  if (limit > 0) {
    array += "%" + std::to_string(limit);
  }
  std::string text = batch_script(program, options, {.requeue = requeue, .array = array}, "one");
  return text.insert(text.find("agent="), "case $SLURM_ARRAY_TASK_ID in\n" + cases + "esac\n");
}

}  // namespace remote::launch
