#pragma once

#include <string>

#include "agent/host/path.hpp"
#include "agent/job/exec_job.hpp"
#include "wire/start.hpp"

namespace remote::agent {

struct ContainerEntry {
  Path folder;          // the job's folder
  std::string program;  // the copy of the server's program
  RankFiles files;
};

// Turns this process into the engine's client, which runs `remote-agent exec-job inside` as the container's
// first process. PWD must be the project's folder. Writes the file `container`.
[[noreturn]] void enter_container(const wire::JobContainer& container, const ContainerEntry& entry);

// Returns the home directory for a job whose container has no writable one: the container's own /tmp, or a
// folder of the job if /tmp is a mount. A mounted /tmp can be the server's (apptainer), where other users can
// leave startup files and Python packages. `mounts` is the text of /proc/self/mountinfo.
std::string choose_home(const Path& job_folder, std::string_view mounts);

// The variables that a job gets from Slurm and slurm-job, as NAME=VALUE separated by NUL bytes.
std::string collect_slurm_variables();
// Whether Slurm or slurm-job sets a variable with this name.
bool is_of_slurm(std::string_view name);

}  // namespace remote::agent
