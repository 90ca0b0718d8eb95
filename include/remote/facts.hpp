#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <remote/gpu.hpp>

// Facts about a server, as it reports them. All text comes from the server: it has no control characters, but
// is otherwise untrusted. Unknown facts are nullopt or empty.

namespace remote {

// The result of a test in the project's folder. Like a run, the test writes 1 MiB, sets a mode, takes a lock,
// and creates a link and a pipe.
enum class FolderFlaw {
  none,
  full,
  quota,  // of the user
  read_only,
  no_permission,
  no_modes,  // the file system does not keep file modes
  no_locks,
  no_links,  // or pipes
  other
};
// A file system, as seen from one of the folders that matter (statfs(2)).
struct DiskFacts {
  std::string what;          // "project", "environment", "tmp" or "shm"
  std::string path;          // the folder, or its nearest existing parent
  bool there = false;        // the folder itself exists
  bool writable = false;     // for the user
  std::uint64_t device = 0;  // st_dev: folders with the same number share one file system
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;  // for users other than root
  std::uint64_t inodes = 0;      // 0: no fixed number (btrfs, some network file systems)
  std::uint64_t free_inodes = 0;
  std::string type;                // as stat(1) names it
  std::optional<bool> rotational;  // true: a hard disk; false: solid state (/sys/block/*/queue/rotational)
  std::optional<std::string> unusable_tmpdir{};  // for "tmp": TMPDIR, if programs cannot write there
  std::string dangling{};  // the target of the folder, if it is a link and the target does not exist
  // For "project": what programs need to read it, if that may be lost at the last logout, such as "AFS
  // tokens".
  std::string access_needs{};
};

// A port of an InfiniBand or RoCE device (/sys/class/infiniband).
struct InfinibandPort {
  std::string device;
  int port = 0;
  std::string layer;  // "InfiniBand", or "Ethernet" for RoCE
  std::string state;  // "ACTIVE", "DOWN", "INIT" …
  std::string rate;   // as the kernel words it: "200 Gb/sec (4X HDR)"
  bool active() const { return state == "ACTIVE"; }
};

// An installed Python package, by the name of its .dist-info or .egg-info.
struct PackageFacts {
  std::string version;
  // Installed in the folder of Debian's own packages (/usr/lib/python3/dist-packages). Servers may have
  // different sets of these.
  bool distribution = false;
  friend bool operator==(const PackageFacts&, const PackageFacts&) = default;
};

// Soft limits of getrlimit(2); nullopt: unlimited.
using LimitFacts = std::map<std::string, std::optional<std::uint64_t>>;

// A shared library that a process has mapped (/proc/PID/maps).
struct LibraryFacts {
  std::string name;    // "libnccl.so.2"
  std::string path;    // untrusted text, made visible
  std::string digest;  // of its size and of the first and last 4 MiB
  std::uint64_t size = 0;
};

// The result of importing torch with the Python that a job would use.
struct ImportFacts {
  std::string error;    // why the import failed; otherwise empty
  std::string trouble;  // error or warning while listing its devices; otherwise empty
  std::string torch;
  std::chrono::duration<double> took{0};
  int devices = 0;                      // number of usable GPUs
  std::string cuda;                     // the CUDA version that it was built for; "-": none
  std::string nccl;                     // only if there are devices
  std::vector<LibraryFacts> libraries;  // without system libraries and Python's own modules
};

struct ServerFacts {
  // Digests: of the machine, and of its /etc/machine-id alone, which machines made from one image may share
  // ("" in containers).
  std::string machine{};
  std::string image{};

  // /etc/os-release, /proc/sys/kernel
  std::string host;
  std::string os;
  std::string kernel;
  std::string user;  // the user name of the login
  std::optional<std::uint32_t> uid;

  // /proc/cpuinfo, /sys/devices/system/node
  std::string cpu;
  int sockets = 0;  // 0: not reported, as on ARM
  int cores = 0;    // without hyper-threads; 0: not reported
  int threads = 0;
  int usable_threads = 0;  // that a process of the user may run on (sched_getaffinity(2))
  int numa_nodes = 0;
  std::optional<double> cpu_limit;  // limit of the control groups, in processors

  // /proc/meminfo, control groups; bytes
  std::uint64_t memory = 0;
  std::uint64_t memory_available = 0;
  std::optional<std::uint64_t> memory_limit;  // the lowest limit of its control groups

  std::vector<double> load;  // over 1, 5 and 15 minutes; three values, or none
  std::vector<DiskFacts> disks;
  // "nofile", "nproc" (numbers), "memlock", "core", "as", "fsize" (bytes), "cpu" (seconds)
  LimitFacts limits;

  // How far the server's clock is ahead of this machine's clock; negative: behind. 0 if the difference is
  // within the measurement error, which is the response time.
  std::chrono::duration<double> clock_ahead{0};

  // python3 of the environment, or else the one in PATH; empty: none.
  std::string python_program;
  std::string python_path{};              // PYTHONPATH of the user, if jobs get it
  std::string python_home{};              // PYTHONHOME, likewise
  std::string python;                     // "3.11.2"
  bool python_managed = false;            // the distribution manages its packages, so pip refuses (PEP 668)
  std::optional<int> prologue_failure{};  // the exit status of the prologue, if it failed
  // Only if there is no Python. First: why the first program that was tried is not used. Second: a Python
  // that jobs do not find because it is not in their PATH. Untrusted text.
  std::string python_refusal{};
  std::string hidden_python{};
  // From torch/version.py in its packages; torch is not imported.
  std::string torch;
  std::string cuda;                              // the CUDA version that torch was built for
  std::string hip;                               // the HIP version that torch was built for
  std::string nccl;                              // version of the package nvidia-nccl-*
  std::map<std::string, PackageFacts> packages;  // by normalized name (PEP 503)
  std::string driver;                            // NVIDIA's (/sys/module/nvidia/version)
  std::optional<ImportFacts> imported{};         // only if requested

  GpuFacts gpus{};
  std::vector<InfinibandPort> infiniband;
  std::set<std::string> programs;  // those of a fixed list: rsync, docker, apptainer, sbatch …
  std::string hidden_rsync{};      // path of rsync, if it is installed and not on the login's PATH

  // logind.conf(5)
  std::vector<std::string> kill_excluded;  // users of KillExcludeUsers
  std::vector<std::string> kill_only;      // users of KillOnlyUsers
  bool kill_user_processes = false;        // the processes of a session are killed when it ends
  bool removes_ipc = false;                // a user's shared memory is removed at the last logout
  bool linger = false;                     // loginctl enable-linger
  bool in_session = false;                 // processes of the login belong to a logind session

  // Why a launch with restarts excluded this server after it had failed twice in this way: "gpu", "ecc",
  // "xid", "disk". "": it was not excluded, or the mark was cleared (CheckRequest::well).
  std::string sick{};
  // A file or folder of the project that other users of the server can write to; "": none found.
  std::string open_path{};
  bool jobs_closed = false;  // the folder of the jobs exists but is not writable
  FolderFlaw flaw = FolderFlaw::none;
  std::string flaw_text{};  // the server's error message: "Disk quota exceeded"

  const DiskFacts* disk(const std::string& what) const {
    for (const DiskFacts& one : disks) {
      if (one.what == what) {
        return &one;
      }
    }
    return nullptr;
  }
};

}  // namespace remote
