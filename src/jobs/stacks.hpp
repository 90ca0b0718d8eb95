#pragma once

#include <optional>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/job.hpp>
#include <remote/launch.hpp>

#include "config/config.hpp"
#include "jobs/site.hpp"
#include "servers/action.hpp"
#include "ssh/connector.hpp"

// The Python stacks of running jobs: asking for them, and putting equal ones together.

namespace remote::jobs {

// What a server tells of one process.
struct ProcessDump {
  JobId id;  // its job's
  int pid = 0;
  std::optional<int> rank;  // RANK of its environment
  // kernel: no stack could be had, the lines are what the kernel says of its threads
  enum class Method { py_spy, faulthandler, kernel };
  Method method = Method::kernel;
  std::string why;  // for kernel
  std::vector<std::string> lines;
};

struct StacksAnswer {
  std::vector<ProcessDump> dumps;  // jobs that have ended meanwhile have none
  void take(servers::AnswerLine& line);
};

// py-spy is looked for on the server's PATH, then in the environment that the sh text `activate` enters.
servers::Action<StacksAnswer> stacks_action(const RemoteFolder& folder, const std::vector<JobId>& ids,
                                            const std::string& activate = "");

// The threads of a dump of py-spy or faulthandler.
std::vector<ThreadStack> parse_threads(const ProcessDump& dump);

// One exec a server, servers side by side.
StacksResult read_stacks(const Site& site, const std::vector<Job>& jobs);

// sh text to stand behind a job's activation, for --enable-stacks (src/server/enable_stacks.sh). For an
// agent of torchrun also what goes along with that (src/server/torch_agent.py).
std::string enable_stacks_text(const std::string& jobs_folder, bool is_torch_agent = false);

}  // namespace remote::jobs
