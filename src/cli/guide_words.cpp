#include "cli/guide_words.hpp"

#include <algorithm>

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
    {" -np --np -n -c -ppn --ppn --npernode --ntasks --ntasks-per-node --num-gpus --num-proc ",
     "--nproc-per-node N says how many ranks each server gets, and -H a:2,b:4 does so for each server"},
    {" --num-nodes -N ", "--server names the servers of a launch; on a login node of Slurm, --nodes N"},
    {" -x -genv -env ", "-e NAME=VALUE sets a variable for all ranks"},
    {" -hosts --host-list --hosts ", "-H a:2,b:2 names the servers and their ranks"},
    {" -machinefile --machinefile -machine --machine-file -f -hostfile ", "--hostfile FILE"},
    {" --mca -mca --prtemca --bind-to --map-by --rank-by --report-bindings ",
     "settings of mpirun are variables, too: -e OMPI_MCA_NAME=VALUE"},
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

std::string hint_for_guides_option(std::string_view word) {
  std::string name(word.substr(0, word.find('=')));
  std::ranges::replace(name, '_', '-');
  const auto found = std::ranges::find_if(guide_words, [&](const GuideWord& one) {
    return one.names.find(" " + name + " ") != std::string_view::npos;
  });
  return found == std::end(guide_words) ? std::string() : std::string(found->hint);
}

}  // namespace remote::cli
