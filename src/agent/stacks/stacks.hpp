#pragma once

#include <functional>
#include <map>
#include <string>

#include "agent/host/host.hpp"
#include "agent/job/record.hpp"
#include "agent/serve/stream.hpp"
#include "agent/stacks/process_stack.hpp"
#include "wire/stacks.hpp"

namespace remote::agent {

using TakeStack = std::function<void(wire::ProcessStack)>;

// Reads the stacks of a job's ranks on this machine, or the kernel's data about its main process if it has no
// ranks. `jobs` is the result of find_job_processes().
void read_job_stacks(const Host& host, const JobsFolder& folder, const std::map<int, std::string>& jobs,
                     const std::string& id, const StackReader& reader, const TakeStack& take);

// Throws std::runtime_error if Slurm does not answer. Slow.
void answer_stacks(const Host& host, const wire::StacksRequest& request, Stream& stream);

// `remote-agent stacks JOBS_FOLDER ID`: prints StacksReply as lines of JSON, in a Slurm step. Reads the shell
// text that enters the environment from stdin. Returns the exit status.
int run_stacks(int count, char** words);

}  // namespace remote::agent
