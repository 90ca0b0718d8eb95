#include "cli/failure_hints.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Hints for failures whose last lines show the cause. Each row of the table has a line here, as the program
// prints it.

namespace remote::cli {
namespace {

using ::testing::HasSubstr;

struct Failure {
  const char* line;
  const char* hint;  // a part of the hint
};

class FailureHints : public ::testing::TestWithParam<Failure> {};

constexpr Failure failures[] = {
    {"EOFError: EOF when reading a line", "there is no terminal to type on"},
    {"termios.error: (25, 'Inappropriate ioctl for device')", "there is no terminal to type on"},
    {"/usr/lib/python3.11/getpass.py:91: GetPassWarning: Can not control echo on the terminal.",
     "-e NAME=VALUE"},
    {"/root/.ssh/id_rsa already exists. Overwrite (y/n)? ", "there is no terminal to type on"},
    {"Enter file in which to save the key (/root/.ssh/id_rsa): ", "there is no terminal to type on"},
    {"sudo: a terminal is required to read the password; either use the -S option", "remote run --tty"},
    {"fatal: could not read Username for 'https://github.com': No such device or address",
     "there is no terminal to type on"},
    {"fatal: could not read Password for 'https://ada@github.com': No such device or address",
     "there is no terminal to type on"},
    {"Host key verification failed.", "`ssh HOST`"},
    {"git@github.com: Permission denied (publickey).", "has no key for that host"},
    {"requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/x",
     "HF_TOKEN"},
    {"OSError: Could not find kaggle.json. Make sure it's located in /root/.config/kaggle.", "KAGGLE_KEY"},
    {"PermissionError: [Errno 13] Permission denied: '/data/x.bin'", "`ls -ld`"},
    {"OSError: Cannot access gated repo for url https://huggingface.co/x/resolve/main/config.json.",
     "HF_TOKEN"},
    {"OSError: [Errno 24] Too many open files: 'data/0001.pt'", "ulimit -n"},
    {"exit 1, the disk there was full", "remote job-clean"},
    {"exit 1, the disk quota there was used up", "quota -s"},
    {"RuntimeError: DataLoader worker (pid 4242) is killed by signal: Bus error. It is possible that "
     "dataloader's "
     "workers are out of shared memory.",
     "/dev/shm"},
    {"RuntimeError: DataLoader worker (pid 4242) is killed by signal: Bus error.", "/dev/shm"},
    {"RuntimeError: DataLoader worker (pid(s) 4242, 4243) exited unexpectedly", "/dev/shm"},
    {"RuntimeError: unable to write to file: No space left on device (28): /dev/shm/torch_4242", "/dev/shm"},
    {"OSError: [Errno 28] No space left on device", "a disk there is full"},
    {"OSError: [Errno 122] Disk quota exceeded: 'ckpt.pt'", "quota"},
    {"RuntimeError: The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
     "--nproc-per-node 1"},
    {"torch.distributed.DistNetworkError: The server socket has failed to listen. port: 29500, code: "
     "EADDRINUSE",
     "--nproc-per-node 1"},
    {"train.py: error: unrecognized arguments: --local-rank=0", "LOCAL_RANK"},
    {"train.py: error: unrecognized arguments: --local_rank=0", "LOCAL_RANK"},
    {"Error: No such option: --local-rank", "LOCAL_RANK"},
    {"train.py: error: unrecognized arguments: --nproc-per-node 2", "options of the launch go before"},
    {"train.sh: line 2: $'\\r': command not found", "Windows line endings"},
    {"/usr/bin/env: 'bash\\r': No such file or directory", "Windows line endings"},
    {"train.sh: 2: \r: command not found", "Windows line endings"},
    {"bash: ./train.sh: /bin/bash^M: bad interpreter: No such file or directory", "Windows line endings"},
    {"_pickle.UnpicklingError: invalid load key, 'v'.", "git lfs pull"},
    {"version https://git-lfs.github.com/spec/v1", "git lfs pull"},
    {"ValueError: Cannot load file containing pickled data when allow_pickle=False", "git lfs pull"},
    {"gzip.BadGzipFile: Not a gzipped file (b've')", "git lfs pull"},
    {"safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge", "git lfs pull"},
    {"safetensors_rust.SafetensorError: Error while deserializing header: header too large", "git lfs pull"},
    {"OSError: Unable to open file (file signature not found)", "git lfs pull"},
    {"pyarrow.lib.ArrowInvalid: Parquet magic bytes not found in footer. Either the file is corrupted",
     "git lfs pull"},
    {"json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)", "git lfs pull"},
    {"NameError: name 'null' is not defined", "nbconvert"},
    {"AssertionError: Torch not compiled with CUDA enabled", "built without CUDA"},
    {"RuntimeError: The NVIDIA driver on your system is too old (found version 11040).", "newer CUDA"},
    {"RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version", "newer CUDA"},
    {"fatal: not a git repository (or any of the parent directories): .git",
     "exclude.txt excludes: launches and jobs have the commit in the variable REMOTE_COMMIT"},
    {"git.exc.InvalidGitRepositoryError: /home/ada/demo", "REMOTE_COMMIT"},
    {"subprocess.CalledProcessError: Command '['git', 'rev-parse', 'HEAD']' returned non-zero exit status "
     "128.",
     "without .git, which .remote/exclude.txt excludes"},
    {"SIGBUS", "/dev/shm"},
    {"RuntimeError: unable to allocate shared memory(shm) for file </torch_1_2_3>", "/dev/shm"},
    {"RuntimeError: unable to open shared memory object </torch_12_34> in read-write mode: No such file or "
     "directory (2)",
     "RemoveIPC=no"},
    {"RuntimeError: CUDA error: no kernel image is available for execution on the device", "architecture"},
    {"RuntimeError: Found no NVIDIA driver on your system.", "its driver does not answer"},
    {"Error 804: forward compatibility was attempted on non supported HW", "newer CUDA"},
    {"RuntimeError: [enforce fail at device.cc:140] Unable to find address for: enp7s0",
     "GLOO_SOCKET_IFNAME"},
    {"vm:4242:4242 [0] NCCL WARN Bootstrap : no socket interface found", "NCCL_SOCKET_IFNAME"},
    {"bash: line 1: python: command not found", "remote prepare"},
    {"sh: 1: python: not found", "remote prepare"},
    {"bash: line 1: cd: too many arguments", "--cmd 'cd sub && python train.py'"},
    {"bash: line 1: conda: command not found", "environment: NAME"},
    {"sh: 1: conda: not found", "environment: NAME"},
    {"CondaError: Run 'conda init' before 'conda activate'", "environment: NAME"},
    {"CommandNotFoundError: Your shell has not been properly configured to use 'conda activate'.",
     "environment: NAME"},
    {"bash: line 1: module: command not found", "prologue: module load"},
    {"sh: 1: module: not found", "prologue: module load"},
    {"sh: 1: source: not found", "`. FILE`"},
    {"bash: line 1: venv/bin/activate: No such file or directory", "`remote prepare` makes one there"},
    {"bash: line 1: activate: No such file or directory", "environment: NAME"},
    {"ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
     "opencv-python-headless"},
    {"ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
     "its driver does not answer"},
    {"OSError: libcudnn.so.9: cannot open shared object file: No such file or directory",
     "unset LD_LIBRARY_PATH"},
    {"Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: wrong version",
     "unset LD_LIBRARY_PATH"},
    {"Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so}",
     "unset LD_LIBRARY_PATH"},
    {"RuntimeError: cuDNN error: CUDNN_STATUS_VERSION_MISMATCH", "unset LD_LIBRARY_PATH"},
    {"ImportError: libsndfile.so.1: cannot open shared object file: No such file or directory",
     "system_packages"},
    {"ImportError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by "
     "x.so)",
     "older than this package needs"},
    {"RuntimeError: Gloo connectFullMesh failed with [../gloo/transport/tcp/pair.cc:144] no error",
     "`remote check` tries the connections"},
    {"RuntimeError: [../gloo/transport/tcp/pair.cc:799] connect [127.0.1.1]:34521: Connection refused",
     "names the interface lo"},
    {"gpu1:42:77 [0] socket.cc:484 NCCL WARN socketStartConnect: Connect to 127.0.0.1<43211> failed : "
     "Connection refused",
     "names the interface lo"},
    {"gpu1:42:77 [0] socket.cc:484 NCCL WARN socketStartConnect: Connect to 172.17.0.1<43211> failed : "
     "Software caused connection abort",
     "NCCL_SOCKET_IFNAME"},
    {"torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to "
     "connect "
     "to (10.0.0.5, 29500).",
     "`remote check` tries the connections"},
    {"torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 1/2 clients joined.",
     "did not reach the port of rank 0"},
    {"urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
     "cannot resolve that name"},
    {"curl: (6) Could not resolve host: huggingface.co", "cannot resolve that name"},
    {"FileNotFoundError: [Errno 2] No such file or directory: '/Users/ada/data/train.csv'",
     "a path on your machine"},
    {"FileNotFoundError: [Errno 2] No such file or directory: 'C:\\\\data\\\\train.csv'",
     "a path on your machine"},
    {"OSError: [Errno 30] Read-only file system: '/data/out'", "read-only"},
    {"OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
     "export CUDA_HOME=/usr/local/cuda"},
    {"UnicodeEncodeError: 'ascii' codec can't encode character '\\xe9' in position 3", "PYTHONUTF8=1"},
    {"OSError: [Errno 116] Stale file handle: 'last.pt'", "network file system"},
    {"bash: line 1: ./train.sh: Permission denied", "chmod +x"},
    {"sh: 1: train.sh\r: not found", "Windows line endings"},
    {"python: can't open file '/home/ada/demo/train.py\r': [Errno 2] No such file or directory",
     "Windows line endings"},
    {"ncclInvalidUsage: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000",
     "a GPU for each rank"},
};

TEST_P(FailureHints, NameTheRemedy) {
  EXPECT_THAT(hint_for_failure({"Traceback (most recent call last):", GetParam().line, ""}),
              HasSubstr(GetParam().hint));
}

INSTANTIATE_TEST_SUITE_P(, FailureHints, ::testing::ValuesIn(failures));

TEST(FailureHintTable, HasNoRowThatIsNotTried) {
  std::set<const void*> tried;
  for (const Failure& failure : failures) {
    for (const FailureHint& hint : failure_hints()) {
      const std::string_view line = failure.line;
      const std::size_t at = line.find(hint.marks[0]);
      if (at != std::string_view::npos && line.find(hint.marks[1], at) != std::string_view::npos) {
        tried.insert(&hint);
        break;
      }
    }
  }
  EXPECT_EQ(tried.size(), failure_hints().size());
}

TEST(FailureHintRules, AskForAnAccountInManyWords) {
  for (const char* line :
       {"wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])",
        "wandb.errors.errors.UsageError: No API key configured. Use `wandb login` to log in.",
        "ValueError: Please login with `huggingface-cli login`", "Access to it is restricted. Please log in.",
        "tracker: no API key and no terminal to ask on",
        "botocore.exceptions.NoCredentialsError: Unable to locate credentials"}) {
    EXPECT_THAT(hint_for_failure({line}), HasSubstr("-e NAME copies a variable")) << line;
  }
  EXPECT_EQ(hint_for_failure({"RuntimeError: the API key was accepted"}), "");
}

TEST(FailureHintRules, NameTheVariableThatIsMissing) {
  const auto expect = [](const char* line, const char* hint) { EXPECT_EQ(hint_for_failure({line}), hint); };
  expect("KeyError: 'OPENAI_API_KEY'", "-e OPENAI_API_KEY copies that variable from here");
  expect("ValueError: found no environment variable named COMET_WORKSPACE",
         "-e COMET_WORKSPACE copies that variable from here");
  expect("train.sh: line 3: HF_TOKEN: unbound variable", "-e HF_TOKEN copies that variable from here");
  expect("RuntimeError: the DATA_ROOT environment variable is not set",
         "-e DATA_ROOT copies that variable from here");
  expect("Exception: environment variable 'WANDB_MODE' not found",
         "-e WANDB_MODE copies that variable from here");
  for (const char* variable : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    EXPECT_THAT(hint_for_failure({std::string("ValueError: Error initializing torch.distributed using env:// "
                                              "rendezvous: environment variable ") +
                                  variable + " expected, but not set"}),
                HasSubstr("remote torch-launch"))
        << variable;
  }
  expect("ERROR: required environment variable data_dir is not set", "");
  expect("[2026-11-28 09:00:00] environment variable x not found", "");
  expect("KeyError: 'LABELS'", "");
  expect("Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.", "");
  expect("ValueError: PAD_TOKEN has 3 rows", "");
}

TEST(FailureHintRules, AVariableOfTheRanksIsSetByALaunch) {
  for (const char* variable : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR"}) {
    EXPECT_THAT(hint_for_failure({std::string("KeyError: '") + variable + "'"}),
                HasSubstr("remote torch-launch"))
        << variable;
  }
}

TEST(FailureHintRules, ABareEndOfInputIsAQuestionThatNobodyAnswers) {
  EXPECT_THAT(hint_for_failure({"  File \"/usr/lib/python3.11/getpass.py\", line 148, in _raw_input",
                                "    raise EOFError", "EOFError"}),
              HasSubstr("there is no terminal to type on"));
  EXPECT_EQ(
      hint_for_failure({"  File \"/usr/lib/python3.11/multiprocessing/connection.py\", line 399, in _recv",
                        "    raise EOFError", "EOFError"}),
      "");
}

TEST(FailureHintRules, SharedMemoryThatIsGoneMayHaveBeenRemovedAtTheLogout) {
  const auto named = testing::AllOf(HasSubstr("RemoveIPC=no"), HasSubstr("`loginctl enable-linger`"));
  EXPECT_THAT(hint_for_failure({"FileNotFoundError: [Errno 2] No such file or directory: '/dev/shm/cache'"}),
              named);
  EXPECT_THAT(hint_for_failure(
                  {"  File \"/usr/lib/python3.11/multiprocessing/shared_memory.py\", line 104, in __init__",
                   "    self._fd = _posixshmem.shm_open(", "               ^^^^^^^^^^^^^^^^^^^^^",
                   "FileNotFoundError: [Errno 2] No such file or directory: '/c5_1'"}),
              named);
  EXPECT_EQ(hint_for_failure({"FileNotFoundError: [Errno 2] No such file or directory: '/c5_1'"}), "");
  EXPECT_EQ(hint_for_failure(
                {"    self._fd = _posixshmem.shm_open(", "FileExistsError: [Errno 17] File exists: '/c5_1'"}),
            "");
}

TEST(FailureHintTable, TheLastLineWithARemedyCounts) {
  EXPECT_EQ(hint_for_failure({}), "");
  EXPECT_EQ(hint_for_failure({"ValueError: a bad batch"}), "");
  EXPECT_THAT(
      hint_for_failure({"sh: 1: python: not found", "OSError: [Errno 24] Too many open files", "bye"}),
      HasSubstr("ulimit"));
}

TEST(FailureHint, OnlyTheEndOfTheOutputCounts) {
  const std::string failure = "OSError: [Errno 24] Too many open files\n";
  EXPECT_THAT(hint_for_output(failure + std::string(8000, 'x')), HasSubstr("ulimit"));
  EXPECT_EQ(hint_for_output(failure + std::string(9000, 'x')), "");
}

TEST(FailureHint, ASmallSharedMemoryIsNamedWithItsSize) {
  const FailureFacts facts{.server = "a", .shm = "64 MiB"};
  EXPECT_THAT(hint_for_failure({"RuntimeError: DataLoader worker (pid(s) 42) exited unexpectedly"}, facts),
              testing::StartsWith("/dev/shm of a has 64 MiB, which may be too little"));
  EXPECT_THAT(hint_for_failure({"OSError: [Errno 24] Too many open files"}, facts), HasSubstr("ulimit"));
}

TEST(FailureHint, OneRankOnEachServerIsNotAdvisedAgain) {
  const std::vector<std::string> lines = {"RuntimeError: Address already in use"};
  EXPECT_THAT(std::string(hint_for_failure(lines)), HasSubstr("--nproc-per-node 1"));
  EXPECT_THAT(
      std::string(hint_for_failure(lines, {.has_one_rank_each = true})),
      testing::AllOf(HasSubstr("another process has the port"), testing::Not(HasSubstr("--nproc-per-node"))));
}

}  // namespace
}  // namespace remote::cli
