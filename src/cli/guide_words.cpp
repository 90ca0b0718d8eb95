#include "cli/guide_words.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "launch/command.hpp"

namespace remote::cli {
namespace {

struct GuideWord {
  std::string_view names;  // with "-" for "_", a blank around each
  std::string_view hint;
};

// From the manual pages and --help of torchrun, mpirun and mpiexec (Open MPI, MPICH), deepspeed, sbatch,
// docker and apptainer.
constexpr GuideWord guide_words[] = {
    {" --rdzv-endpoint --rdzv-id --rdzv-conf ",
     "leave it out: each launch has a rendezvous of its own on its first server; with --launcher torchrun, "
     "--rdzv "
     "says of which kind"},
    {" --node-rank --local-addr ", "leave it out: every server of a launch is given its own"},
    {" --master-addr ",
     "leave it out: it is the first server's address; -e MASTER_ADDR=ADDRESS sets another one"},
    {" --standalone ", "name one server: --server S"},
    {" --no-python ", "remote launch starts what is not Python"},
    {" -m --module ", "it stands behind the options: remote torch-launch -- -m package.train"},
    {" --monitor-interval --start-method --run-path ", "leave it out: remote chooses it"},
    {" -r -t --redirects --tee --log-dir ",
     "leave it out: the output of every rank is kept, and remote job-tail --rank N shows it"},
    {" -np --np -n -c -ppn --ppn --npernode --ntasks --ntasks-per-node --num-gpus --num-proc "
     "--gpus-per-process --world-size ",
     "--nproc-per-node N says how many ranks each server gets; -H a:2,b:4 says it for each server"},
    {" --num-nodes -N ", "--server names the servers of a launch; on a login node of Slurm, --nodes N"},
    {" -x -genv -env ", "-e NAME=VALUE sets a variable for all ranks"},
    {" -hosts --host-list --hosts ", "-H a:2,b:2 names the servers and their ranks"},
    {" -machinefile --machinefile -machine --machine-file -f -hostfile ", "--hostfile FILE"},
    {" --mca -mca --prtemca ", "settings of mpirun are variables, too: -e OMPI_MCA_NAME=VALUE"},
    {" --bind-to -bind-to --map-by -map-by --rank-by -rank-by --report-bindings -report-bindings ",
     "leave it out: remote places the ranks, N on each server; with --launcher mpi, "
     "-e OMPI_MCA_hwloc_base_binding_policy=none does what --bind-to none does"},
    {" --num-processes --num-machines --machine-rank --main-process-ip --main-process-port ",
     "--nproc-per-node N says how many ranks each server gets; remote sets the rest"},
    {" --allow-run-as-root ", "leave it out: it is given to mpirun where the login is root"},
    {" -p --partition -A --account --time --gres --gpus-per-node --constraint -C --mem --cpus-per-task "
     "--qos ",
     "it belongs to the login node in configs.yaml: partition, account, time, gpus_per_node, constraint, or "
     "any "
     "line of sbatch: […]"},
    {" --gpus -v --volume --mount --network --ipc --shm-size --nv --bind -B --rm -it ",
     "--image IMAGE runs the ranks in containers, with the network, IPC and GPUs of the server; more options "
     "are "
     "`container: {args: […]}` in configs.yaml"},
};

}  // namespace

namespace {

struct OtherCommand {
  std::string_view names;    // a blank around each
  std::string_view command;  // of this program
};

// From docker, kubectl, git, systemd, rsync, scp, slurm and other launchers.
constexpr OtherCommand other_commands[] = {
    {" ps ls list jobs queue squeue ", "job-list"},
    {" logs log tail follow attach cat ", "job-tail"},
    {" kill stop cancel scancel terminate abort ", "job-kill"},
    {" wait ", "job-wait"},
    {" stacks py-spy ", "job-stacks"},
    {" rm clean prune ", "job-clean"},
    {" ssh login sh bash connect ", "shell"},
    {" exec cmd do ", "run"},
    {" start submit sbatch bg nohup ", "job-run"},
    {" train torchrun srun mpirun fit ", "torch-launch"},
    {" pull cp scp get download fetch ", "job-pull"},
    {" push sync send upload ", "rsync"},
    {" install pip ", "update-packages"},
    {" provision deploy up ", "prepare"},
    {" doctor ping test diagnose ", "check"},
    {" hosts nodes info sinfo nvidia-smi ", "servers"},
    {" watch htop monitor ", "top"},
};

}  // namespace

std::string_view command_for(std::string_view word) {
  const auto found = std::ranges::find_if(other_commands, [&](const OtherCommand& one) {
    return one.names.find(" " + std::string(word) + " ") != std::string_view::npos;
  });
  return found == std::end(other_commands) ? std::string_view() : found->command;
}

std::string other_launcher(std::string_view command) {
  constexpr std::array<std::string_view, 12> launchers = {
      "torchrun", "deepspeed", "horovodrun", "mpirun",         "mpiexec",      "orterun",
      "prterun",  "srun",      "composer",   "mpirun.openmpi", "mpirun.mpich", "mpiexec.hydra"};
  constexpr std::array<std::string_view, 5> modules = {"torch.distributed.run", "torch.distributed.launch",
                                                       "accelerate.commands.launch", "deepspeed",
                                                       "deepspeed.launcher.runner"};
  const std::vector<std::string> words = launch::shell_words(command);
  std::size_t at = 0;
  while (at < words.size() &&
         (words[at] == "exec" || words[at] == "env" || words[at].find('=') != std::string::npos)) {
    ++at;
  }
  if (at == words.size()) {
    return "";
  }
  const std::string name = words[at].substr(words[at].rfind('/') + 1);
  const std::string next = at + 1 < words.size() ? words[at + 1] : "";
  if (std::ranges::find(launchers, name) != launchers.end()) {
    return name;
  }
  if ((name == "accelerate" && next == "launch") ||
      ((name == "lightning" || name == "fabric") && next == "run")) {
    return name + " " + next;
  }
  at += launch::is_python(name) ? 1 : 0;  // "python -m MODULE", or "-m MODULE" alone
  const bool is_module = at + 1 < words.size() && words[at] == "-m" &&
                         std::ranges::find(modules, words[at + 1]) != modules.end();
  return is_module ? "-m " + words[at + 1] : "";
}

std::string hint_for_guides_option(std::string_view word) {
  std::string name(word.substr(0, word.find('=')));
  std::ranges::replace(name, '_', '-');
  const auto found = std::ranges::find_if(guide_words, [&](const GuideWord& one) {
    return one.names.find(" " + name + " ") != std::string_view::npos;
  });
  return found == std::end(guide_words) ? std::string() : std::string(found->hint);
}

}  // namespace remote::cli
