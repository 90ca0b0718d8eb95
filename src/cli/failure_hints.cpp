#include "cli/failure_hints.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/has_any.hpp"
#include "base/strings.hpp"

namespace remote::cli {
namespace {

constexpr std::string_view no_terminal =
    "there is no terminal to type on: give the answer as an option, a variable (-e NAME=VALUE) or a file; "
    "`remote run "
    "--tty` has a terminal";
constexpr std::string_view key_as_variable =
    "-e NAME copies a variable from here, such as -e WANDB_API_KEY or -e HF_TOKEN; or log in once on the "
    "server with `remote shell`";
constexpr std::string_view full_disk =
    "its last output may be missing: `remote job-clean` removes the folders of finished jobs there, and "
    "`remote check` shows the space on its disks";
constexpr std::string_view no_space =
    "a disk there is full: `remote check` shows the space on each of them; `remote job-clean` removes the "
    "folders of finished jobs, and TMPDIR in `env` of the server moves temporary files";
constexpr std::string_view used_quota =
    "the quota of the login there is used up, which `quota -s` shows; `remote job-clean` removes the folders "
    "of finished jobs";
constexpr std::string_view small_shm =
    "/dev/shm may be too small for the data loader: `remote check` shows its size; try fewer workers "
    "(num_workers), or give a container --shm-size";
constexpr std::string_view known_small_shm =
    "/dev/shm of {} has {}, which may be too little for the data loader: try fewer workers (num_workers), or "
    "give a container --shm-size";
constexpr std::string_view removed_shm =
    "systemd may have removed the user's files in /dev/shm at the last logout (RemoveIPC=yes): "
    "`remote check` shows it; there, `loginctl enable-linger` keeps them, or RemoveIPC=no in logind.conf as "
    "root";
constexpr std::string_view wrong_cuda =
    "torch there was built for a newer CUDA than the driver knows: `remote check` shows both; choose wheels "
    "for the driver's CUDA (`index_url` in configs.yaml)";
constexpr std::string_view cpu_only =
    "torch there was built without CUDA: choose wheels with CUDA (`index_url` in configs.yaml), then run "
    "`remote prepare`";
constexpr std::string_view windows_lines =
    "the file has Windows line endings: sed -i 's/\\r$//' FILE, then `remote rsync`";
constexpr std::string_view lfs_pointer =
    "the file is only a pointer of git-lfs: `git lfs pull` here, then `remote rsync`";
constexpr std::string_view maybe_pointer =
    "the file may be empty, or only a pointer of git-lfs, as `head -n 1 FILE` shows: `git lfs pull` here, "
    "then "
    "`remote rsync`";
constexpr std::string_view no_git =
    "the copy of the project on a server has no .git, which .remote/exclude.txt excludes: launches and jobs "
    "have the commit in the variable "
    "REMOTE_COMMIT";
constexpr std::string_view git_failed =
    "git fails in a copy of the project without .git, which .remote/exclude.txt excludes, or without its "
    "tags: launches and jobs have the commit "
    "in the variable REMOTE_COMMIT";
constexpr std::string_view no_driver =
    "there is no GPU, or its driver does not answer: `remote check` lists its GPUs; choose "
    "another with "
    "--server";
constexpr std::string_view no_interface =
    "the variable NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME does not name an interface of that server: "
    "`remote run -- ip -brief address` shows its interfaces";
constexpr std::string_view port_in_use =
    "another process has the port. A script that calls torchrun itself is started once for every rank: give "
    "--nproc-per-node 1, or let remote start the ranks: remote torch-launch -- train.py";
constexpr std::string_view port_of_one_rank =
    "another process has the port: give the script another one, or let remote start the ranks: remote "
    "torch-launch -- train.py";
constexpr std::string_view local_rank =
    "the script does not take --local-rank: `remote torch-launch` does not give it, and sets the variable "
    "LOCAL_RANK";
constexpr std::string_view rank_variable =
    "`remote torch-launch` sets that variable for each rank: remote torch-launch -- train.py";
constexpr std::string_view quoted_words =
    "a word such as && behind the program is an argument of it: a line for the shell is one word in quotes, "
    "--cmd 'cd sub && python train.py'";
constexpr std::string_view conda_on_server =
    "commands on a server do not run the part of ~/.bashrc that defines conda: name the environment in "
    "configs.yaml, "
    "`python: {conda: ~/miniconda3, environment: NAME}`, in place of activating it";
constexpr std::string_view module_on_server =
    "load modules in `prologue` of configs.yaml, which runs before every command and has `module` if the "
    "server "
    "has it: prologue: module load cuda";
constexpr std::string_view sh_source =
    "sh has no `source`: write `. FILE`, or put the line into `prologue` of configs.yaml";
constexpr std::string_view own_venv =
    "a virtual environment of this machine is not sent: `remote prepare` makes one there, and every command "
    "already runs in it";
constexpr std::string_view unknown_host =
    "the login on the server has not accepted that host's key: connect once by hand, `remote shell` and then "
    "`ssh HOST`, and compare the key";
constexpr std::string_view no_ssh_key =
    "the login on the server has no key for that host, as the keys of this machine are not forwarded: make "
    "one there, or fetch the data here and send it with `remote rsync`";
constexpr std::string_view no_library =
    "a shared library is missing there: list the distribution's package that has it under `system_packages` "
    "in "
    "configs.yaml, then run `remote setup`";
constexpr std::string_view other_cudnn =
    "torch has its own cuDNN, and LD_LIBRARY_PATH of the login may name another one: `prologue: unset "
    "LD_LIBRARY_PATH` in configs.yaml";
constexpr std::string_view old_system =
    "the system there is older than this package needs: choose an older version of the package, a conda "
    "environment, or an image (`image` in configs.yaml)";
constexpr std::string_view no_path_between =
    "the ranks cannot connect to each other: `remote check` tries the connections; "
    "`internal_address` and the variable GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME choose another network";
constexpr std::string_view loopback =
    "a rank gave the others an address that only its own server can reach: GLOO_SOCKET_IFNAME or "
    "NCCL_SOCKET_IFNAME names the interface lo, or the server's host name means 127.0.1.1; `remote run -- "
    "ip -brief address` shows the interfaces";
constexpr std::string_view no_name_service =
    "the server cannot resolve that name, and may have no access to the internet: fetch the data here and "
    "send it with `remote rsync`";
constexpr std::string_view path_of_laptop =
    "this is a path on your machine: give a path relative to the project, or where the data is on the server";
constexpr std::string_view read_only =
    "the disk there is read-only: `remote check` shows whether it is that of the project; write to another "
    "folder, or choose another remote_path";
constexpr std::string_view no_toolkit =
    "the CUDA toolkit is not installed there, or CUDA_HOME does not name it: `prologue: export "
    "CUDA_HOME=/usr/local/cuda` in configs.yaml if it is there, or install a wheel that is already compiled";
constexpr std::string_view no_utf8 = "the login there has no UTF-8 locale: -e PYTHONUTF8=1";
constexpr std::string_view stale_file =
    "the file on a network file system (NFS) was removed or replaced while it was open: run it again, and "
    "let "
    "each rank write files of its own";
constexpr std::string_view not_executable =
    "the file is not executable: `chmod +x FILE` here, then `remote rsync`; or start it with `bash FILE`";
constexpr std::string_view notebook =
    "a notebook is not a program: jupyter nbconvert --to script FILE.ipynb, and start the .py";

constexpr std::array hints{
    FailureHint{{"EOFError: EOF when reading a line"}, no_terminal},
    FailureHint{{"termios.error: (25, "}, no_terminal},
    FailureHint{{"GetPassWarning"}, no_terminal},
    FailureHint{{"Overwrite (y/n)?"}, no_terminal},
    FailureHint{{"Enter file in which to save the key"}, no_terminal},
    FailureHint{{"sudo: a terminal is required"}, no_terminal},
    FailureHint{{"could not read Username for"}, no_terminal},
    FailureHint{{"could not read Password for"}, no_terminal},
    FailureHint{{"Host key verification failed"}, unknown_host},
    FailureHint{{"Permission denied (publickey"}, no_ssh_key},
    FailureHint{{"Cannot access gated repo"}, key_as_variable},
    FailureHint{{"401 ", "huggingface.co"}, key_as_variable},
    FailureHint{{"Could not find kaggle.json"},
                "-e KAGGLE_USERNAME -e KAGGLE_KEY copies these variables from here"},
    FailureHint{{"PermissionError: [Errno 13]"},
                "the user on the server may not use that file or folder: `ls -ld` there shows its owner"},
    FailureHint{{"Too many open files"},
                "raise the limit before the program: `prologue: ulimit -n 65536` in configs.yaml; with many "
                "data loader "
                "workers also torch.multiprocessing.set_sharing_strategy('file_system')"},
    FailureHint{{"the disk there was full"}, full_disk},  // a cause in a verdict
    FailureHint{{"the disk quota there was used up"},
                "its last output may be missing: `remote run -- quota -s` shows the quota, and `remote "
                "job-clean` removes the folders of finished jobs there"},
    FailureHint{{"Bus error", "shared memory"}, small_shm},
    FailureHint{{"unable to allocate shared memory"}, small_shm},
    FailureHint{{"SIGBUS"}, small_shm},  // the cause in a verdict
    FailureHint{{"DataLoader worker", "Bus error"}, small_shm},
    FailureHint{{"DataLoader worker", "exited unexpectedly"}, small_shm},
    FailureHint{{"No space left on device", "/dev/shm"}, small_shm},
    FailureHint{{"No space left on device"}, no_space},
    FailureHint{{"Disk quota exceeded"}, used_quota},
    FailureHint{{"unable to open shared memory object", "No such file"}, removed_shm},
    FailureHint{{"Address already in use"}, port_in_use},
    FailureHint{{"EADDRINUSE"}, port_in_use},
    FailureHint{{"unrecognized arguments:", "--local-rank"}, local_rank},
    FailureHint{{"unrecognized arguments:", "--local_rank"}, local_rank},
    FailureHint{{"No such option", "--local-rank"}, local_rank},
    FailureHint{
        {"unrecognized arguments:", "--nproc"},
        "options of the launch go before the program: remote torch-launch --nproc-per-node 2 -- train.py"},
    FailureHint{{"$'\\r': command not found"}, windows_lines},
    FailureHint{{"\\r': No such file or directory"}, windows_lines},
    FailureHint{{"\r: command not found"}, windows_lines},
    FailureHint{{"^M: bad interpreter"}, windows_lines},
    FailureHint{{"invalid load key, 'v'"}, lfs_pointer},
    FailureHint{{"version https://git-lfs.github.com/spec"}, lfs_pointer},
    FailureHint{{"Not a gzipped file (b've')"}, lfs_pointer},
    FailureHint{{"Cannot load file containing pickled data"}, maybe_pointer},
    FailureHint{{"HeaderTooLarge"}, maybe_pointer},
    FailureHint{{"Error while deserializing header: header too large"}, maybe_pointer},
    FailureHint{{"file signature not found"}, maybe_pointer},
    FailureHint{{"Parquet magic bytes not found"}, maybe_pointer},
    FailureHint{{"JSONDecodeError: Expecting value: line 1 column 1"}, maybe_pointer},
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
    FailureHint{{"cd: too many arguments"}, quoted_words},
    FailureHint{{"conda: command not found"}, conda_on_server},
    FailureHint{{"conda: not found"}, conda_on_server},
    FailureHint{{"Run 'conda init'"}, conda_on_server},
    FailureHint{{"not been properly configured to use 'conda activate'"}, conda_on_server},
    FailureHint{{"module: command not found"}, module_on_server},
    FailureHint{{"module: not found"}, module_on_server},
    FailureHint{{"source: not found"}, sh_source},
    FailureHint{{"/activate: No such file"}, own_venv},
    FailureHint{{"activate: No such file"}, conda_on_server},
    FailureHint{
        {"libGL.so.1: cannot open shared object file"},
        "opencv needs libGL: use the package opencv-python-headless, or `system_packages: [libgl1]` in "
        "configs.yaml, then `remote prepare`"},
    FailureHint{{"libcuda.so.1: cannot open shared object file"}, no_driver},
    FailureHint{{"libcudnn", "cannot open shared object file"}, other_cudnn},
    FailureHint{{"Could not load library libcudnn"}, other_cudnn},
    FailureHint{{"Unable to load", "libcudnn"}, other_cudnn},
    FailureHint{{"CUDNN_STATUS_VERSION_MISMATCH"}, other_cudnn},
    FailureHint{{".so", "cannot open shared object file: No such file"}, no_library},
    FailureHint{{"version `GLIBC", "not found"}, old_system},
    FailureHint{{"connectFullMesh failed"}, no_path_between},
    FailureHint{{"connect [127."}, loopback},
    FailureHint{{"NCCL WARN", "Connect to 127."}, loopback},
    FailureHint{{"NCCL WARN", "Connect to"}, no_path_between},
    FailureHint{{"clients joined"},
                "a rank did not reach the port of rank 0 in time: `remote check` tries the connections, "
                "and every server must start its ranks, with the right WORLD_SIZE"},
    FailureHint{{"socket has timed out", "trying to connect to"}, no_path_between},
    FailureHint{{"Temporary failure in name resolution"}, no_name_service},
    FailureHint{{"Could not resolve host"}, no_name_service},
    FailureHint{{"No such file or directory: '/Users/"}, path_of_laptop},
    FailureHint{{"No such file or directory: 'C:"}, path_of_laptop},
    FailureHint{{"Read-only file system"}, read_only},
    FailureHint{{"CUDA_HOME environment variable is not set"}, no_toolkit},
    FailureHint{{"'ascii' codec can't"}, no_utf8},
    FailureHint{{"Stale file handle"}, stale_file},
    FailureHint{{": ./", ": Permission denied"}, not_executable},
    FailureHint{{"\r: not found"}, windows_lines},
    FailureHint{{"\r': [Errno 2]"}, windows_lines},
    FailureHint{
        {"Duplicate GPU detected"},
        "NCCL needs a GPU for each rank: start fewer ranks on the server, or use gloo; two servers of "
        "configs.yaml may be one machine"},
};

// Whether the line asks for a login or a key. `line`: lowercase.
bool asks_for_account(std::string_view line) {
  const bool names_key =
      has_any(line, {"api key", "api_key", "api-key", "apikey", "access token", "credentials"});
  return (names_key && has_any(line, {"no ", "not ", "unable", "missing", "must", "provide", "required"})) ||
         has_any(line, {"please log in", "please login", "not logged in", "must log in", "login required"});
}

constexpr std::string_view variable_characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

// A word of at least three capitals, digits and underscores that starts with a letter.
bool is_variable(std::string_view word) {
  return word.size() >= 3 && word.front() >= 'A' && word.front() <= 'Z' &&
         word.find_first_not_of(variable_characters) == word.npos;
}

// The first variable in the line; "" if none.
std::string_view find_variable(std::string_view line) {
  while (!line.empty()) {
    const auto* const begin = std::ranges::find_if(line, is_name_character);
    const auto* const end = std::find_if_not(begin, line.end(), is_name_character);
    const std::string_view word(begin, end);
    if (is_variable(word)) {
      return word;
    }
    line = {end, line.end()};
  }
  return "";
}

// The variable at the start of the text, after a quote, a colon or "named"; "" if none.
std::string_view find_first_variable(std::string_view text) {
  constexpr std::string_view named = " named ";
  if (text.starts_with(named)) {
    text.remove_prefix(named.size());
  }
  text.remove_prefix(std::min(text.find_first_not_of(" :'\"`$"), text.size()));
  const std::string_view word = text.substr(
      0, static_cast<std::size_t>(std::ranges::find_if_not(text, is_name_character) - text.begin()));
  return is_variable(word) ? word : "";
}

// The variable at the end of the text, before a quote; "" if none.
std::string_view find_last_variable(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" '\"`") + 1);
  std::size_t size = 0;
  while (size < text.size() && is_name_character(text[text.size() - 1 - size])) {
    ++size;
  }
  const std::string_view word = text.substr(text.size() - size);
  return is_variable(word) ? word : "";
}

bool is_of_ranks(std::string_view variable) {
  return variable == "RANK" || variable == "LOCAL_RANK" || variable == "WORLD_SIZE" ||
         variable == "LOCAL_WORLD_SIZE" || variable.starts_with("MASTER_");
}

bool is_secret(std::string_view variable) {
  return std::ranges::any_of(std::array<std::string_view, 4>{"_KEY", "_TOKEN", "_SECRET", "_PASSWORD"},
                             [&](std::string_view end) { return variable.ends_with(end); });
}

// The variable that the program is missing; "" if none.
std::string_view find_missing_variable(std::string_view line) {
  constexpr std::string_view key_error = "KeyError: '";
  constexpr std::string_view environment = "environment variable";
  if (const std::size_t at = line.find(key_error); at != line.npos) {
    const std::string_view variable = find_variable(line.substr(at + key_error.size()));
    return is_secret(variable) || is_of_ranks(variable) ? variable : "";
  }
  if (!has_any(line, {"not set", "unset", "missing", "required", "named ", "not found", "not defined",
                      "must ", "unbound variable"})) {
    return "";
  }
  if (const std::size_t at = line.find(environment); at != line.npos) {
    const std::string_view behind = find_first_variable(line.substr(at + environment.size()));
    const std::string_view variable = behind.empty() ? find_last_variable(line.substr(0, at)) : behind;
    return variable == "CUDA_HOME" ? "" : variable;  // a path on this machine
  }
  const std::string_view variable = find_variable(line);
  return is_secret(variable) ? variable : "";
}

// A bare EOFError may also come from a process of multiprocessing, after another one has died.
bool asks_for_input(std::string_view line, const std::vector<std::string>& lines) {
  return trim(line) == "EOFError" && std::ranges::none_of(lines, [](const std::string& other) {
           return has_any(other, {"multiprocessing", "connection.py"});
         });
}

// The missing file is in /dev/shm, or is an object of shm_open(), whose name has no folder.
bool misses_shared_memory(std::string_view line, const std::vector<std::string>& lines) {
  return has_any(line, {"FileNotFoundError"}) &&
         (has_any(line, {"'/dev/shm/"}) || std::ranges::any_of(lines, [](const std::string& other) {
            return has_any(other, {"shm_open", "shared_memory.py"});
          }));
}

}  // namespace

std::span<const FailureHint> failure_hints() {
  return hints;
}

std::string hint_for_failure(const std::vector<std::string>& lines, const FailureFacts& facts) {
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
    if (found != hints.end() && found->hint == small_shm && !facts.shm.empty()) {
      return fmt::format(known_small_shm, facts.server, facts.shm);
    }
    if (found != hints.end()) {
      return std::string(found->hint == port_in_use && facts.has_one_rank_each ? port_of_one_rank
                                                                               : found->hint);
    }
    if (misses_shared_memory(*line, lines)) {
      return std::string(removed_shm);
    }
    if (asks_for_input(*line, lines)) {
      return std::string(no_terminal);
    }
    if (const std::string_view variable = find_missing_variable(*line); !variable.empty()) {
      return is_of_ranks(variable) ? std::string(rank_variable)
                                   : fmt::format("-e {} copies that variable from here", variable);
    }
    if (asks_for_account(lower_case(*line))) {
      return std::string(key_as_variable);
    }
  }
  return "";
}

std::string hint_for_output(std::string_view output) {
  constexpr std::size_t most = 8192;  // earlier lines are not the cause
  return hint_for_failure(split(output.substr(output.size() - std::min(output.size(), most)), '\n'));
}

}  // namespace remote::cli
