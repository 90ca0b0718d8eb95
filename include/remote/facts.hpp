#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <remote/gpu.hpp>

// What a server is and has, as it says itself. All text comes from the server: it has no control characters,
// and nothing else about it is certain. What could not be found out is nullopt or empty.

namespace remote {

// The result of a trial in the project's folder.
// It writes 1 MiB, sets a mode, locks, and makes a link and a
// pipe, as a run does.
enum class FolderFlaw {
  none,
  full,
  quota,  // of the login
  read_only,
  no_permission,
  no_modes,  // the file system does not keep them
  no_locks,
  no_links,  // or no pipes
  other
};
// A file system, as a folder of interest lies on it (statfs(2)).
struct DiskFacts {
  std::string what;          // "project", "environment", "tmp" or "shm"
  std::string path;          // the folder, or the nearest one above it that is there
  bool there = false;        // the folder itself is there
  bool writable = false;     // to the login
  std::uint64_t device = 0;  // st_dev: folders with the same number share one file system
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;  // for a user without root's rights
  std::uint64_t inodes = 0;      // 0: the file system has no fixed number of them (btrfs, some network ones)
  std::uint64_t free_inodes = 0;
  std::string type;                // as stat(1) names it
  std::optional<bool> rotational;  // a hard disk; false: solid state (/sys/block/*/queue/rotational)
  std::optional<std::string> unusable_tmpdir{};  // of "tmp": TMPDIR, if programs cannot write there
  // Of "project": what programs need to read it, if that may be lost at the last logout, such as "AFS
  // tokens".
  std::string access_needs{};
};

// A port of an InfiniBand or RoCE device (/sys/class/infiniband).
struct InfinibandPort {
  std::string device;
  int port = 0;
  std::string layer;  // "InfiniBand", or "Ethernet": RoCE
  std::string state;  // "ACTIVE", "DOWN", "INIT" …
  std::string rate;   // as the kernel words it: "200 Gb/sec (4X HDR)"
  bool active() const { return state == "ACTIVE"; }
};

// An installed Python package, by the name of its .dist-info or .egg-info.
struct PackageFacts {
  std::string version;
  // From the folder of Debian's own packages (/usr/lib/python3/dist-packages). Servers may differ in which
  // they have.
  bool distribution = false;
  friend bool operator==(const PackageFacts&, const PackageFacts&) = default;
};

// A soft limit of getrlimit(2): nullopt is unlimited.
using LimitFacts = std::map<std::string, std::optional<std::uint64_t>>;

// A shared library that a process has mapped (/proc/PID/maps).
struct LibraryFacts {
  std::string name;    // "libnccl.so.2"
  std::string path;    // foreign text, made visible
  std::string digest;  // of its size and of the first and last 4 MiB
  std::uint64_t size = 0;
};

// What torch is once it is imported, by the Python that a job would get.
struct ImportFacts {
  std::string error;    // why it cannot be imported; else empty
  std::string trouble;  // what it says when it is asked for its devices; else empty
  std::string torch;
  std::chrono::duration<double> took{0};
  int devices = 0;                      // GPUs that it can use
  std::string cuda;                     // that it was built for; "-": none
  std::string nccl;                     // only where there are devices
  std::vector<LibraryFacts> libraries;  // but for the system's own and Python's modules
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
  std::string user;  // the login
  std::optional<std::uint32_t> uid;

  // /proc/cpuinfo, /sys/devices/system/node
  std::string cpu;
  int sockets = 0;  // 0: not told, as on ARM
  int cores = 0;    // without hyper-threads; 0: not told
  int threads = 0;
  int usable_threads = 0;  // that a process of the login may run on (sched_getaffinity(2))
  int numa_nodes = 0;
  std::optional<double> cpu_limit;  // processors' worth of time that control groups leave

  // /proc/meminfo, control groups; bytes
  std::uint64_t memory = 0;
  std::uint64_t memory_available = 0;
  std::optional<std::uint64_t> memory_limit;  // the lowest of control groups

  std::vector<double> load;  // over 1, 5 and 15 minutes; three, or none
  std::vector<DiskFacts> disks;
  LimitFacts limits;  // "nofile", "nproc" (numbers), "memlock", "core" (bytes)

  // That the server's clock is ahead of this machine's, behind where negative; 0 where they may agree, as the
  // answer took its time.
  std::chrono::duration<double> clock_ahead{0};

  // Where the environment's python3 is, else that of PATH; empty: none.
  std::string python_program;
  std::string python_path{};  // PYTHONPATH of the login, if jobs have it
  std::string python_home{};  // PYTHONHOME, likewise
  std::string python;         // "3.11.2"
  // If there is none: why the first program that was tried is not used, and one that jobs do not find, as it
  // is not on their PATH. Foreign text.
  std::string python_refusal{};
  std::string hidden_python{};
  // torch/version.py in its packages; torch is not imported.
  std::string torch;
  std::string cuda;                              // that torch was built for
  std::string hip;                               // that torch was built for
  std::string nccl;                              // of the package nvidia-nccl-*
  std::map<std::string, PackageFacts> packages;  // by their normalized name (PEP 503)
  std::string driver;                            // NVIDIA's (/sys/module/nvidia/version)
  std::optional<ImportFacts> imported{};         // only where that was asked for

  GpuFacts gpus{};
  std::vector<InfinibandPort> infiniband;
  std::set<std::string> programs;  // of those that are looked for: rsync, docker, podman, apptainer, sbatch …

  // logind.conf(5)
  bool kill_user_processes = false;        // processes of a session end when it does
  std::vector<std::string> kill_excluded;  // users of KillExcludeUsers
  std::vector<std::string> kill_only;      // users of KillOnlyUsers
  bool removes_ipc = false;                // shared memory of a user is removed at the last logout
  bool linger = false;                     // loginctl enable-linger
  bool in_session = false;                 // what the login starts is in a session of logind

  // Why a launch with restarts left this server out, as it had failed so twice: "gpu", "ecc", "xid", "disk".
  // "": it did not, or somebody has said since that the server is well (CheckRequest::well).
  std::string sick{};
  bool jobs_closed = false;  // the folder of the jobs is there, and cannot be written in
  // A file or folder of the project that other users of the server can write to; "": none was found.
  std::string open_path{};
  FolderFlaw flaw = FolderFlaw::none;
  std::string flaw_text{};  // the server's words for it: "Disk quota exceeded"

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
