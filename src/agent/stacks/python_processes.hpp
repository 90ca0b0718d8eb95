#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/host/host.hpp"

namespace remote::agent {

// A rank, or a Python program that starts ranks, such as torchrun's agent.
struct PythonProcess {
  int pid = 0;
  std::optional<int> rank{};  // RANK in its environment
};

// Returns the Python processes of a job. Of several processes with the same rank, returns only the topmost
// one, which excludes data loaders. `jobs`: the job of each process, from find_job_processes(). In a Slurm
// step, only processes of its own node count, because several nodes may be one machine.
std::vector<PythonProcess> find_python_processes(const Host& host, const std::map<int, std::string>& jobs,
                                                 const std::string& id);

}  // namespace remote::agent
