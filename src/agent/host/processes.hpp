#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "agent/host/host.hpp"

// Functions for the processes of this machine.

namespace remote::agent {

// Identifies a process even if its pid is reused: `start` is its start time in clock ticks since boot.
struct ProcessId {
  int pid = 0;
  std::uint64_t start = 0;

  friend bool operator==(const ProcessId&, const ProcessId&) = default;
  // NOLINTNEXTLINE(modernize-use-nullptr): false positive of clang-tidy 14
  friend auto operator<=>(const ProcessId&, const ProcessId&) = default;
};

// The fields of /proc/PID/stat.
struct Process {
  ProcessId id;
  int parent = 0;
  int group = 0;
  int session = 0;
  char state = '?';
  bool exits = false;       // the kernel is tearing it down
  std::uint64_t ticks = 0;  // processor time, in hundredths of a second
  std::string name;         // at most 15 bytes, set by the process itself

  bool is_dead() const { return state == 'Z' || state == 'X' || state == 'x'; }
};

Path find_process_folder(const Host& host, int pid);
// nullopt if the process does not exist.
std::optional<Process> read_process(const Host& host, int pid);
// Parses the content of a stat file.
std::optional<Process> parse_process(std::string_view text);
// Zombies count as dead.
bool is_alive(const Host& host, ProcessId id);

// Returns all pids, sorted.
std::vector<int> list_processes(const Host& host);
// The children of all threads of a process; nullopt if the kernel does not report them
// (CONFIG_PROC_CHILDREN).
std::optional<std::vector<int>> list_children(const Host& host, int pid);
// The owner according to /proc; it changes if the process changes its user.
std::optional<uid_t> find_owner(const Host& host, int pid);
// The user that started it, even if it is a setuid program.
std::optional<uid_t> find_real_user(const Host& host, int pid);

// Sends a signal to exactly this process, through a pidfd if the kernel supports it (Linux 5.3). Returns
// false if it has exited or belongs to another user.
bool send_signal(const Host& host, ProcessId id, int signal);

struct JobVariable {
  std::string job{};  // "" if REMOTE_JOB_ID is missing, or another user has set it
  bool is_readable = false;
};
// Reads REMOTE_JOB_ID of a process. `user` is the effective user of the calling process.
JobVariable read_job_variable(const Host& host, int pid, uid_t user);
// Maps the pids of this user's processes to the job in their REMOTE_JOB_ID. Processes whose environment
// belongs to another user are ignored, even for root. The calling process is not included.
std::map<int, std::string> find_job_processes(const Host& host);

// A variable of a process; nullopt if it is not set, or the environment is not readable.
std::optional<std::string> find_variable(const Host& host, int pid, std::string_view name);
// Whether a process has this variable, "NAME=VALUE"; false if its environment is not readable.
bool has_variable(const Host& host, int pid, std::string_view variable);

// The boot id, or "unknown".
std::string read_boot_id(const Host& host);
// Milliseconds since the epoch.
std::chrono::milliseconds read_wall_clock();
// Time since boot, including suspend. It never jumps.
std::chrono::milliseconds read_boot_clock();
// The time since the process started; 0 if that is in the future. /proc/uptime is not used: it may be that of
// a container, while start times are those of the machine (LXC).
std::chrono::milliseconds find_age(ProcessId id);

// Explains why this user cannot start a process: "the login's limit of 24 processes (ulimit -u) is reached";
// "" if a few more can be started.
std::string find_process_limit(const Host& host);

}  // namespace remote::agent
