#include "agent/stacks/stacks.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/host/processes.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/kept_program.hpp"
#include "agent/slurm/queue.hpp"
#include "agent/stacks/looker.hpp"
#include "agent/stacks/python_processes.hpp"
#include "base/strings.hpp"
#include "wire/json_text.hpp"
#include "wire/read_json.hpp"

namespace remote::agent {
namespace {

// Shell code that runs the agent in the program folder $0. If that is mounted noexec, it runs from memory.
constexpr const char* run_copy =
    R"(a=$0/remote-agent; "$a" try 2>/dev/null; [ $? != 42 ] || exec "$a" "$@"; )"
    R"(exec python3 -B -S -I "$0/python/run_agent.py" "$a" "$@")";

constexpr std::chrono::seconds slurm_call_limit{20};

void read_local_stacks(const Host& host, const JobsFolder& folder, const std::vector<std::string>& ids,
                       const std::string& activate, const TakeStack& take) {
  const Looker alone(host, folder, ids);
  const StackReader reader(host, activate);
  const auto jobs = find_job_processes(host);
  for (const std::string& id : ids) {
    read_job_stacks(host, folder, jobs, id, reader, take);
  }
}

// Processes the stacks in the output of run_stacks(). Returns the other lines.
std::string take_node_output(std::string_view output, const TakeStack& take) {
  std::string rest;
  for (const std::string& line : split(output, '\n')) {
    auto reply = line.starts_with('{') ? wire::read_json<wire::StacksReply>(line) : std::nullopt;
    if (!reply) {
      rest += line + "\n";
      continue;
    }
    for (wire::ProcessStack& stack : reply->processes) {
      take(std::move(stack));
    }
  }
  return rest;
}

// Reads the stacks in a step of the job on each of its nodes.
class NodeStacks {
 public:
  NodeStacks(const Host& host, const JobsFolder& folder, const wire::StacksRequest& request)
      : folder_(folder), request_(request), tools_(host), queue_(host, tools_) {}

  void read(const JobRecord& job, const TakeStack& take) {
    queue_.ask(std::chrono::seconds(1));
    if (!queue_.trouble().empty()) {
      throw std::runtime_error(queue_.trouble());
    }
    const SlurmRow* row = queue_.find(job.id, read_slurm_number(job.folder));
    if (job.has_result() || row == nullptr || row->state != "RUNNING") {
      return;
    }
    const Path program = find_kept_program(folder_, request_.digest);
    if (program.empty()) {
      throw std::runtime_error("the server's program is missing in " + (folder_.jobs / ".bin").string());
    }
    bool is_read = false;
    std::string errors;
    // Reads one node after the other, because all processes of the job write their stacks to one file.
    for (const std::string& node :
         split_words(tools_.call({"scontrol", "show", "hostnames", row->nodes}, slurm_call_limit).out)) {
      const Descriptor activate = hold_text(request_.activate);
      const RunResult result =
          tools_.call(make_step(*row, node, program, job.id), slurm_call_limit, true, activate.get());
      errors = take_node_output(result.out, [&](wire::ProcessStack stack) {
        is_read = true;
        take(std::move(stack));
      });
      if (!result.succeeded()) {
        fail_unless(is_read, find_last_line(errors));
        return;
      }
    }
  }

 private:
  std::vector<std::string> make_step(const SlurmRow& row, const std::string& node, const Path& program,
                                     const std::string& id) const {
    return {"srun",
            "--jobid=" + row.number,
            "--overlap",
            "--mem=0",
            "--cpu-bind=none",
            "--mpi=none",
            "--nodes=1",
            "--ntasks=1",
            "--nodelist=" + node,
            "sh",
            "-c",
            run_copy,
            program,
            "stacks",
            folder_.jobs,
            id};
  }
  static void fail_unless(bool is_read, const std::string& line) {
    if (!is_read) {
      throw std::runtime_error("srun could not inspect the job on its nodes" +
                               (line.empty() ? "" : ": " + line));
    }
  }

  const JobsFolder& folder_;
  const wire::StacksRequest& request_;
  SlurmTools tools_;
  SlurmQueue queue_;
};

}  // namespace

void read_job_stacks(const Host& host, const JobsFolder& folder, const std::map<int, std::string>& jobs,
                     const std::string& id, const StackReader& reader, const TakeStack& take) {
  const std::optional<JobRecord> job = read_record(host, folder, id);
  if (job && job->has_result()) {
    return;
  }
  const std::vector<PythonProcess> ranks = find_python_processes(host, jobs, id);
  for (const PythonProcess& rank : ranks) {
    take(reader.read(rank, id, folder.jobs / id));
  }
  if (ranks.empty() && job && job->main && is_alive(host, *job->main)) {
    take(reader.read_other(job->main->pid, id));
  }
}

void answer_stacks(const Host& host, const wire::StacksRequest& request, Stream& stream) {
  const JobsFolder folder = JobsFolder::of(host, request.place);
  const TakeStack send = [&](wire::ProcessStack stack) {
    wire::StacksReply reply;
    reply.processes.push_back(std::move(stack));
    stream.send(std::move(reply));
  };
  NodeStacks nodes(host, folder, request);
  std::vector<std::string> local;
  for (const std::string& id : request.ids) {
    const std::optional<JobRecord> job = read_record(host, folder, id);
    if (job && job->backend == "slurm") {
      nodes.read(*job, send);
    } else {
      local.push_back(id);
    }
  }
  if (!local.empty()) {
    read_local_stacks(host, folder, local, request.activate, send);
  }
}

int run_stacks(int count, char** words) {
  if (count != 2 || words[0][0] != '/' || !wire::is_id(words[1])) {
    return 2;
  }
  const Host host = Host::of_this_process();
  const JobsFolder folder{.project = Path(words[0]).parent_path(), .jobs = words[0]};
  read_local_stacks(host, folder, {words[1]}, read_stdin(), [](wire::ProcessStack stack) {
    wire::StacksReply reply;
    reply.processes.push_back(std::move(stack));
    write_whole(STDOUT_FILENO, wire::to_json_text(reply) + "\n");
  });
  return 0;
}

}  // namespace remote::agent
