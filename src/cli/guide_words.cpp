#include "cli/guide_words.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "base/command.hpp"
#include "base/simple_commands.hpp"

namespace remote::cli {
namespace {

struct GuideWord {
  std::string_view names;  // with "-" instead of "_", and blanks around each
  std::string_view hint;
  std::string_view commands = " torch-launch helper-torch-launch launch ";
};

constexpr std::string_view on_servers =
    " run check prepare setup rsync update-packages uninstall servers top authorize ";
constexpr std::string_view with_jobs =
    " job-list job-kill job-tail job-wait job-clean job-stacks job-pull report ";

// From the manual pages and --help of torchrun, mpirun and mpiexec (Open MPI, MPICH), deepspeed, sbatch,
// docker, kubectl, pdsh, top and apptainer.
constexpr GuideWord guide_words[] = {
    {" --rdzv-endpoint --rdzv-id --rdzv-conf ",
     "leave it out: each launch has its own rendezvous on its first server; with --launcher torchrun, --rdzv "
     "sets its kind"},
    {" --node-rank --local-addr ", "leave it out: every server of a launch is given its own"},
    {" --master-addr ",
     "leave it out: it is the first server's address; -e MASTER_ADDR=ADDRESS sets another one"},
    {" --standalone ", "name one server: --server S"},
    {" --no-python ", "use remote launch for programs other than Python"},
    {" -m --module ", "it goes after the options: remote torch-launch -- -m package.train"},
    {" --monitor-interval --start-method --run-path ", "leave it out: remote chooses it"},
    {" -r -t --redirects --tee --log-dir ",
     "leave it out: the output of every rank is kept, and remote job-tail --rank N shows it"},
    {" -np --np -n -ppn --ppn --npernode --ntasks --ntasks-per-node --num-gpus --num-proc "
     "--gpus-per-process --world-size ",
     "--nproc-per-node N says how many ranks each server gets; -H a:2,b:4 says it for each server"},
    {" -c ", "--nproc-per-node N says how many ranks each server gets; --server NAME names the servers"},
    {" --num-nodes -N ", "--server names the servers of a launch; on a login node of Slurm, --nodes N"},
    {" -x -genv -env ", "-e NAME=VALUE sets a variable for all ranks"},
    {" -hosts --host-list --hosts ", "-H a:2,b:2 names the servers and their ranks"},
    {" -machinefile --machinefile -machine --machine-file -hostfile ", "--hostfile FILE"},
    {" -f ", "--follow shows rank 0 until all have ended; --hostfile FILE names the servers"},
    {" -wd -wdir --wdir -D --working-dir -w ", "--workdir DIR is the working directory",
     " torch-launch helper-torch-launch launch run job-run "},
    {" --mca -mca --prtemca ", "settings of mpirun are variables, too: -e OMPI_MCA_NAME=VALUE"},
    {" --bind-to -bind-to --map-by -map-by --rank-by -rank-by --report-bindings -report-bindings ",
     "leave it out: remote places the ranks, N on each server; with --launcher mpi, "
     "-e OMPI_MCA_hwloc_base_binding_policy=none does what --bind-to none does"},
    {" --num-processes --num-machines --machine-rank --main-process-ip --main-process-port ",
     "--nproc-per-node N says how many ranks each server gets; remote sets the rest"},
    {" --allow-run-as-root ", "leave it out: it is given to mpirun where the login is root"},
    {" -p -A -C -t --gres --mem --cpus-per-task --exclusive -G ",
     "under Slurm: --partition, --account, --time, --constraint, --gpus-per-node, and --sbatch 'OPTIONS' for "
     "all others"},
    {" -v --volume --mount --network --ipc --shm-size --nv --bind -B --rm -it ",
     "--image IMAGE runs the ranks in containers, with the network, IPC and GPUs of the server; more options "
     "are "
     "`container: {args: […]}` in configs.yaml. Under Slurm, --gpus-per-node asks for GPUs"},
    {" -n -np --np --nproc --nproc-per-node --ntasks ",
     "`remote torch-launch` and `remote launch` start ranks", " run job-run "},
    {" -it -ti -i -t ", "--tty gives the command a terminal", " run "},
    {" --rm ", "leave it out: the command runs in no container", " run "},
    {" -u --user ", "the user is the server's: `username` in configs.yaml", " run shell "},
    {" -it -ti -i -t ", "leave it out: a shell has a terminal", " shell "},
    {" -p --port ", "the port is the server's: `port` in configs.yaml", " shell run "},
    {" -L ", "leave -L out: remote forward SERVER LOCAL:HOST:PORT", " forward "},
    {" -R ", "--reverse PORT:LOCAL", " forward "},
    {" -p -i ", "an ssh command is one word, in quotes: remote add NAME 'ssh -p 22 USER@HOST'", " add "},
    {" -V ", "use `remote --version`", " remote "},
    {" -d --detach ", "`remote job-run` starts what outlives the connection", " run "},
    {" -d --detach ", "leave it out: a job outlives the connection",
     " job-run torch-launch helper-torch-launch launch sweep "},
    {" -a --all ", "leave it out: without --server it is for all servers", on_servers},
    {" -av -avz -z -r ", "leave it out: folders and times are always copied", " rsync "},
    {" -H --host --hosts --node --nodes -w -s ", "--server NAME, also a,b or a glob", on_servers},
    {" -H --host --hosts --node --nodes -s ", "--server NAME", " job-run "},
    {" --server --host --node -s -w ", "jobs are named by their keys, --launch or --tag", with_jobs},
    {" --server --host -s ", "the server is a word: remote shell SERVER", " shell "},
    {" -n --limit ", "it lists what runs and what ended lately; --stopped lists all", " job-list "},
    {" -q --format -o --output ", "--json prints data for programs", " job-list servers status top "},
    {" -a --all --failed --stopped --hidden --ranks --tag --launch ", "`remote job-list` has it", " status "},
    {" -a --all ", "leave it out: it is for all", " job-wait job-rsync job-stacks "},
    {" --since ", "-n N begins with the last N lines", " job-tail "},
    {" -f --force ", "--signal KILL kills at once; --yes does not ask", " job-kill "},
    {" -f --force ", "--yes does not ask", " job-clean uninstall "},
    {" -n -d -b --delay --batch ", "--once prints once; --interval SECONDS", " top "},
};

// The launcher that is started if these words, from `at` on, are a command; "" if none.
std::string launcher_at(const std::vector<std::string>& words, std::size_t at) {
  constexpr std::array<std::string_view, 12> launchers = {
      "torchrun", "deepspeed", "horovodrun", "mpirun",         "mpiexec",      "orterun",
      "prterun",  "srun",      "composer",   "mpirun.openmpi", "mpirun.mpich", "mpiexec.hydra"};
  constexpr std::array<std::string_view, 5> modules = {"torch.distributed.run", "torch.distributed.launch",
                                                       "accelerate.commands.launch", "deepspeed",
                                                       "deepspeed.launcher.runner"};
  std::string name = words[at].substr(words[at].rfind('/') + 1);
  const std::string next = at + 1 < words.size() ? words[at + 1] : "";
  if (std::ranges::find(launchers, name) != launchers.end()) {
    return name;
  }
  if ((name == "accelerate" && next == "launch") || (name == "colossalai" && next == "run") ||
      ((name == "lightning" || name == "fabric") && next == "run")) {
    return name + " " + next;
  }
  at += is_python(name) ? 1 : 0;  // "python -u -m MODULE", or only "-m MODULE"
  while (at < words.size() && words[at] != "-m" && words[at].starts_with('-')) {
    at += has_name(" -W -X ", words[at]) ? 2 : 1;
  }
  const bool is_module = at + 1 < words.size() && words[at] == "-m" &&
                         std::ranges::find(modules, words[at + 1]) != modules.end();
  return is_module ? "-m " + words[at + 1] : "";
}

}  // namespace

std::string other_launcher(std::string_view command) {
  const std::vector<std::string> words = shell_words(command);
  bool begins = true;
  for (std::size_t at = 0; at < words.size(); ++at) {
    if (begins) {
      for (std::size_t behind = skip_starter(words, at); behind != at; behind = skip_starter(words, at)) {
        at = behind;
        if (at >= words.size()) {
          return "";
        }
      }
      if (std::string found = launcher_at(words, at); !found.empty()) {
        return found;
      }
      if (at + 2 < words.size() && has_name(" sh bash ", words[at]) && has_name(" -c -lc ", words[at + 1])) {
        return other_launcher(words[at + 2]);
      }
    }
    const std::string& word = words[at];  // a command may also follow "X=1"
    begins = word.ends_with(';') || has_name(" && || | & ; ( { do then else ! ", word) ||
             (begins && word.find('=') != std::string::npos);
  }
  return "";
}

std::string hint_for_guides_option(std::string_view command, std::string_view word) {
  std::string name(word.substr(0, word.find('=')));
  std::ranges::replace(name, '_', '-');
  const auto found = std::ranges::find_if(guide_words, [&](const GuideWord& one) {
    return has_name(one.names, name) && has_name(one.commands, command);
  });
  return found == std::end(guide_words) ? std::string() : std::string(found->hint);
}

}  // namespace remote::cli
