#include "cli/failure_hints.hpp"

#include <algorithm>
#include <iterator>

namespace remote::cli {
namespace {

constexpr std::string_view no_terminal =
    "nobody can type there: give the answer as an option, a variable (-e NAME=VALUE) or a file; `remote run "
    "--tty` has a terminal";
constexpr std::string_view key_as_variable =
    "-e NAME copies a variable from here, such as -e WANDB_API_KEY or -e HF_TOKEN; or log in once on the "
    "server with `remote shell`";
constexpr std::string_view small_shm =
    "/dev/shm may be too small for the data loader: `remote check` shows its size; try fewer workers "
    "(num_workers), or give a container --shm-size";
constexpr std::string_view wrong_cuda =
    "torch there was built for a newer CUDA than the driver knows: `remote check` shows both; choose wheels "
    "for the driver's CUDA (`index_url` in configs.yaml)";
constexpr std::string_view cpu_only =
    "torch there was built without CUDA: choose wheels with CUDA (`index_url` in configs.yaml), then run "
    "`remote prepare`";
constexpr std::string_view windows_lines =
    "the file has line ends of Windows: sed -i 's/\\r$//' FILE, then `remote rsync`";
constexpr std::string_view lfs_pointer =
    "the file is only a pointer of git-lfs: `git lfs pull` here, then `remote rsync`";
constexpr std::string_view no_git =
    "the copy of the project on a server has no .git: launches and jobs have the commit in the variable "
    "REMOTE_COMMIT";
constexpr std::string_view git_failed =
    "git fails in a copy of the project without .git, or without its tags: launches and jobs have the commit "
    "in the variable REMOTE_COMMIT";
constexpr std::string_view no_driver =
    "there is no GPU, or its driver does not answer: `remote check` lists its GPUs; choose "
    "another with "
    "--server";
constexpr std::string_view no_interface =
    "the variable NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME names no interface of that server: `remote check "
    "--network` shows which it has";
constexpr std::string_view port_in_use =
    "another process has the port. A script that calls torchrun itself is started once for every rank: give "
    "--nproc-per-node 1, or let remote start the ranks: remote torch-launch -- train.py";
constexpr std::string_view port_of_one_rank =
    "another process has the port: give the script another one, or let remote start the ranks: remote "
    "torch-launch -- train.py";
constexpr std::string_view local_rank =
    "the script does not take --local-rank: `remote torch-launch` does not give it, and sets the variable "
    "LOCAL_RANK";
constexpr std::string_view notebook =
    "a notebook is no program: jupyter nbconvert --to script FILE.ipynb, and start the .py";

constexpr std::array hints{
    FailureHint{{"EOFError: EOF when reading a line"}, no_terminal},
    FailureHint{{"termios.error: (25, "}, no_terminal},
    FailureHint{{"GetPassWarning"}, no_terminal},
    FailureHint{{"api_key not configured (no-tty)"}, key_as_variable},
    FailureHint{{"No API key configured"}, key_as_variable},
    FailureHint{{"Please login", "huggingface"}, key_as_variable},
    FailureHint{{"Cannot access gated repo"}, key_as_variable},
    FailureHint{{"Too many open files"},
                "raise the limit before the program: `prologue: ulimit -n 65536` in configs.yaml; with many "
                "data loader "
                "workers also torch.multiprocessing.set_sharing_strategy('file_system')"},
    FailureHint{{"Bus error", "shared memory"}, small_shm},
    FailureHint{{"unable to allocate shared memory"}, small_shm},
    FailureHint{{"SIGBUS"}, small_shm},  // the cause in a verdict
    FailureHint{{"DataLoader worker", "Bus error"}, small_shm},
    FailureHint{{"DataLoader worker", "exited unexpectedly"}, small_shm},
    FailureHint{{"No space left on device", "/dev/shm"}, small_shm},
    FailureHint{{"Address already in use"}, port_in_use},
    FailureHint{{"EADDRINUSE"}, port_in_use},
    FailureHint{{"unrecognized arguments:", "--local-rank"}, local_rank},
    FailureHint{{"unrecognized arguments:", "--local_rank"}, local_rank},
    FailureHint{{"No such option", "--local-rank"}, local_rank},
    FailureHint{
        {"unrecognized arguments:", "--nproc"},
        "options of the launch stand before the program: remote torch-launch --nproc-per-node 2 -- train.py"},
    FailureHint{{"$'\\r': command not found"}, windows_lines},
    FailureHint{{"\\r': No such file or directory"}, windows_lines},
    FailureHint{{"\r: command not found"}, windows_lines},
    FailureHint{{"^M: bad interpreter"}, windows_lines},
    FailureHint{{"invalid load key, 'v'"}, lfs_pointer},
    FailureHint{{"version https://git-lfs.github.com/spec"}, lfs_pointer},
    FailureHint{{"NameError: name 'null' is not defined"}, notebook},
    FailureHint{{"Torch not compiled with CUDA enabled"}, cpu_only},
    FailureHint{{"driver on your system is too old"}, wrong_cuda},
    FailureHint{{"CUDA driver version is insufficient"}, wrong_cuda},
    FailureHint{{"not a git repository"}, no_git},
    FailureHint{{"InvalidGitRepositoryError"}, no_git},
    FailureHint{{"'git'", "returned non-zero exit status 128"}, git_failed},
    FailureHint{{"no kernel image is available"},
                "torch there was built without this GPU's architecture: choose other wheels (`index_url` in "
                "configs.yaml), then run `remote prepare`"},
    FailureHint{{"Found no NVIDIA driver"}, no_driver},
    FailureHint{{"Error 804: forward compatibility"}, wrong_cuda},
    FailureHint{{"Unable to find address for:"}, no_interface},
    FailureHint{{"Bootstrap : no socket interface found"}, no_interface},
    FailureHint{{"python: command not found"}, "`remote prepare` makes the Python environment there"},
    FailureHint{{"python: not found"}, "`remote prepare` makes the Python environment there"},
    FailureHint{
        {"Duplicate GPU detected"},
        "NCCL needs a GPU for each rank: start fewer ranks on the server, or use gloo; two servers of "
        "configs.yaml may be one machine"},
};

}  // namespace

std::span<const FailureHint> failure_hints() {
  return hints;
}

std::string_view hint_for_failure(const std::vector<std::string>& lines, bool has_one_rank_each) {
  const auto fits = [](const FailureHint& hint, std::string_view line) {
    return std::ranges::all_of(hint.marks, [&](std::string_view mark) {
      const std::size_t at = line.find(mark);
      line.remove_prefix(at == std::string_view::npos ? line.size() : at + mark.size());
      return at != std::string_view::npos;
    });
  };
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const auto* const found =
        std::ranges::find_if(hints, [&](const FailureHint& hint) { return fits(hint, *line); });
    if (found != hints.end()) {
      return found->hint == port_in_use && has_one_rank_each ? port_of_one_rank : found->hint;
    }
  }
  return "";
}

}  // namespace remote::cli
