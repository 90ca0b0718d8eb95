#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/error.hpp>

#include "config/config.hpp"
#include "jobs/job.hpp"
#include "ssh/connector.hpp"

// The Python stacks of running jobs: asking for them, and putting equal ones together.

namespace remote::jobs {

// Text of a dump as the server has it, of one process.
struct ProcessDump {
  JobId id;  // of its job
  int pid = 0;
  std::optional<int> rank;  // RANK of its environment
  // kernel: no stack could be had, the lines are what the kernel says of its threads
  enum class Method { py_spy, faulthandler, kernel };
  Method method = Method::kernel;
  std::string why;  // for kernel
  std::vector<std::string> lines;
};

std::string stacks_script(const RemoteFolder& folder, const std::vector<JobId>& ids);
// Jobs that have ended meanwhile have no process in it.
std::vector<ProcessDump> parse_stacks(std::string_view out);

// One thread of a dump, the innermost call first: "forward (model.py:12)".
struct ThreadStack {
  std::string name;
  std::vector<std::string> frames;
};

struct RankStack {
  Job job;
  ProcessDump dump;
  std::optional<int> rank;           // the process's, else the job's
  std::vector<ThreadStack> threads;  // the main thread first; empty where no stack could be had
};

// The threads of a dump of py-spy or faulthandler.
std::vector<ThreadStack> parse_threads(const ProcessDump& dump);

struct StackGroup {
  std::vector<RankStack> members;  // whose main threads stand at the same place; by rank
};

// Groups by the main threads' frames (or all threads'), the smallest group first: the odd one out. File names
// count without their folders, which differ from server to server. What gave no stack is in no group.
std::vector<StackGroup> group_stacks(const std::vector<RankStack>& ranks, bool all_threads);

struct StacksResult {
  std::vector<RankStack> ranks;  // by rank; also those without a stack
  std::vector<Job> ended;        // jobs that turned out to have no process
  std::vector<Error> errors;     // servers that did not answer
};

// One exec a server, servers side by side.
StacksResult read_stacks(const config::Config& config, ssh::Connector& connector,
                         const std::vector<Job>& jobs, const Cancel& cancel);

// sh text to stand behind a job's activation, for --enable-stacks: writes a sitecustomize.py into the job's
// folder and puts it before all others on PYTHONPATH. Commands other than Python see a longer PYTHONPATH.
std::string enable_stacks_text(const std::string& jobs_folder);

}  // namespace remote::jobs
