#include "cli/commands.hpp"

#include <algorithm>
#include <iterator>

namespace remote::cli {

// Each is defined in the file in commands/ for its group of options.
using Add = void(CLI::App& command, Context& context);
Add add_init, add_add, add_remove, add_sandbox, add_attach, add_servers, add_check, add_authorize, add_login,
    add_logout, add_trust, add_prepare, add_setup, add_rsync, add_update_packages, add_uninstall, add_run,
    add_shell, add_forward, add_tensorboard, add_jupyter, add_job_run, add_torch_launch,
    add_helper_torch_launch, add_launch, add_sweep, add_notify, add_status, add_top, add_job_list,
    add_job_tail, add_job_wait, add_job_stacks, add_job_why, add_report, add_history, add_show, add_note,
    add_rerun, add_diff, add_job_kill, add_pull, add_job_rsync, add_job_pull, add_job_clean, add_completion,
    add_help;

namespace {

constexpr Command declared[] = {
    {"init", "Begin", "Make this folder a project",
     "remote init --server gpu1=ubuntu@192.0.2.10\nremote init --from hosts", add_init},
    {"add", "Begin", "Add a server, or change its address",
     "remote add gpu1 ubuntu@192.0.2.10\nremote add rented 'ssh -p 40022 root@192.0.2.7'", add_add},
    {"remove", "Begin", "Remove a server from configs.yaml", "remote remove rented", add_remove},
    {"sandbox", "Begin", "Run practice servers on this machine", "remote sandbox up --nodes 2", add_sandbox},
    {"servers", "Begin", "Show the servers, their GPUs and jobs",
     "remote servers\nremote servers --verbose --server gpu1", add_servers},
    {"check", "Begin", "Check that the servers are ready for a run",
     "remote check\nremote check --server 'gpu*'\nremote check --fix\n"
     "remote check --bandwidth --svg heat.svg\nremote check --burn 30",
     add_check},
    {"authorize", "Begin", "Install your public key on the servers",
     "remote authorize --server gpu1 --generate", add_authorize},
    {"login", "Begin", "Log in once for all commands, with OpenSSH",
     "remote login\nremote login --server gpu1 --for 12h", add_login},
    {"logout", "Begin", "Close what login has opened", "remote logout", add_logout},
    {"trust", "Begin", "Allow the project's actions on this machine", "remote trust", add_trust},
    {"prepare", "Prepare the servers", "Run setup, rsync and update-packages on all servers",
     "remote prepare", add_prepare},
    {"setup", "Prepare the servers", "Create the Python environment on the servers",
     "remote setup --server 'gpu*'", add_setup},
    {"rsync", "Prepare the servers", "Copy the project to the servers",
     "remote rsync --dry-run\nremote rsync --delete --verify", add_rsync},
    {"update-packages", "Prepare the servers", "Install the project's packages on the servers",
     "remote update-packages --force", add_update_packages},
    {"uninstall", "Prepare the servers", "Remove all programs of remote from the servers",
     "remote uninstall --dry-run\nremote uninstall --server gpu1", add_uninstall},
    {"run", "Run", "Run a command on the servers",
     "remote run --cmd nvidia-smi\nremote run --server gpu1 --cmd 'python -m pdb train.py'", add_run},
    {"shell", "Run", "Open a login shell on a server", "remote shell gpu1", add_shell},
    {"forward", "Run", "Open ports of servers on this machine",
     "remote forward gpu1 6006\nremote forward gpu1 8080:80 9000:node7:9000\n"
     "remote forward rank:0:5678 rank:3:5678\nremote forward gpu1 --reverse 5000",
     add_forward},
    {"tensorboard", "Run", "Run TensorBoard on a server, open it here",
     "remote tensorboard\nremote tensorboard runs/nightly --server gpu1", add_tensorboard},
    {"jupyter", "Run", "Run Jupyter on a server, open it here", "remote jupyter --server gpu1", add_jupyter},
    {"job-run", "Run", "Start a job that outlives the connection",
     "remote job-run --server gpu1 --cmd 'python train.py' --tag try", add_job_run},
    {"torch-launch", "Run", "Start a distributed PyTorch run",
     "remote torch-launch --cmd 'python train.py' --nproc-per-node 8\n"
     "remote torch-launch --cmd 'python train.py' --server 'gpu*' --follow\n"
     "remote torch-launch --hostfile hosts --include gpu1@gpu2:0,2 --cmd train.py\n"
     "remote torch-launch --init-method file --init-dir /mnt/common --cmd train.py",
     add_torch_launch},
    {"helper-torch-launch", "Run", "Start a PyTorch run with --local_rank=N appended",
     "remote helper-torch-launch --cmd 'python train.py' --nproc-per-node 8", add_helper_torch_launch},
    {"launch", "Run", "Start any other program as ranks",
     "remote launch --cmd './solve input.txt' --nproc-per-node 4", add_launch},
    {"sweep", "Run", "Run a command for many parameters, point by point",
     "remote sweep --param lr=.1,.01 --param seed=0..4 -- python train.py --lr {lr}\n"
     "remote sweep --results last --best max:acc --csv points.csv\nremote sweep --resume 12",
     add_sweep},
    {"rerun", "Run", "Start a launch on record again",
     "remote rerun last\nremote rerun nightly --env SEED 2 -- --lr 3e-4", add_rerun},
    {"notify", "Run", "Send a test notification", "remote notify --test", add_notify},
    {"status", "Jobs", "Show running jobs and what finished since last time", "remote status", add_status},
    {"top", "Jobs", "Show servers, GPUs and jobs live", "remote top\nremote top --once --server 'gpu*'",
     add_top},
    {"job-list", "Jobs", "List launches and jobs",
     "remote job-list --watch\nremote job-list --stopped --tag train.py", add_job_list},
    {"job-tail", "Jobs", "Show and follow the output of jobs",
     "remote job-tail\nremote job-tail 4 --lines 20 --no-follow", add_job_tail},
    {"job-wait", "Jobs", "Wait for jobs; exit 0 if all succeeded", "remote job-wait last && echo done",
     add_job_wait},
    {"job-stacks", "Jobs", "Show the Python stack of every rank", "remote job-stacks 4", add_job_stacks},
    {"attach", "Jobs", "Debug a rank that waits in breakpoint()", "remote attach\nremote attach 1 --launch 4",
     add_attach},
    {"job-why", "Jobs", "Show why a launch hangs or is slow",
     "remote job-why\nremote job-why --launch 45 --evidence", add_job_why},
    {"report", "Jobs", "Write one HTML page about a launch", "remote report\nremote report 45 --watch",
     add_report},
    {"history", "Jobs", "List launches with how they ended",
     "remote history --since 7d --sort loss\nremote history --failed --tag train.py", add_history},
    {"show", "Jobs", "Show everything on record about a launch", "remote show last\nremote show nightly",
     add_show},
    {"note", "Jobs", "Write a note about a launch", "remote note 45 'lr too high'", add_note},
    {"pull", "Jobs", "Copy a launch's output files to results/KEY", "remote pull\nremote pull 45", add_pull},
    {"diff", "Jobs", "Show the differences between two launches",
     "remote diff 45 49\nremote diff nightly now", add_diff},
    {"job-kill", "Jobs", "Stop jobs and check that nothing is left",
     "remote job-kill last\nremote job-kill --tag train.py --grace 30", add_job_kill},
    {"job-rsync", "Jobs", "Copy the jobs' logs to this machine", "remote job-rsync --delay 60",
     add_job_rsync},
    {"job-pull", "Jobs", "Copy a job's files to this machine", "remote job-pull 4 checkpoints/",
     add_job_pull},
    {"job-clean", "Jobs", "Remove finished jobs, here and on the servers", "remote job-clean --older 7",
     add_job_clean},
    {"completion", "Help", "Print a shell completion script",
     "remote completion zsh >_remote\nsource <(remote completion bash)", add_completion},
    {"help", "Help", "Show help for a command or a topic", "remote help torch-launch\nremote help configs",
     add_help},
};

}  // namespace

std::span<const Command> all_commands() {
  return declared;
}

const Command* find_command(std::string_view name) {
  const auto* const found = std::ranges::find(declared, name, &Command::name);
  return found == std::end(declared) ? nullptr : found;
}

}  // namespace remote::cli
