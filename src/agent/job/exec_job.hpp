#pragma once

#include <string>

#include "agent/host/path.hpp"

// The last step of a start: a job's process becomes the job's command.

namespace remote::agent {

// Files of a job's process, relative to the job's folder. Under Slurm, every rank has its own.
struct RankFiles {
  std::string out = "job.out";
  std::string err = "job.err";
  std::string note = ".note";   // a container's first process writes the signal that ended the command
  std::string variables = "-";  // Slurm's variables, for use inside a container; "-": none
};

// Set in processes under Slurm, and so also inside their containers: the network interface toward the first
// node. It becomes the default of GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME.
constexpr const char* interface_variable = "REMOTE_SOCKET_IFNAME";

// Ends this process with a message in the job's stderr, and the exit code 127.
[[noreturn]] void fail_job(const std::string& reason);

// Enters the folder in REMOTE_WORKDIR, if that is set. A relative path starts at the working directory. Calls
// fail_job() if the folder is missing.
void enter_workdir();

// Turns this process into the command of this job, or into the client of its container's engine. If the
// launch waits for a lease, waits for its turn first. The working directory is the job's folder.
[[noreturn]] void exec_job(const Path& folder, const RankFiles& files = {});

// Does the same for a process of a Slurm job, which never waits for a lease.
[[noreturn]] void exec_slurm_job(const Path& folder, const RankFiles& files);

// `remote-agent exec-job`:
//   wait FOLDER                              a job that waits for its lease
//   engine FOLDER OUT ERR NOTE VARIABLES     behind the prologue of a job in a container
//   inside FOLDER OUT ERR NOTE VARIABLES HOME UMASK PROJECT     the first process of the container
int run_exec_job(int count, char** words);

}  // namespace remote::agent
