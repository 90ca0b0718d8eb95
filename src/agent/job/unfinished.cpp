#include "agent/job/unfinished.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/host/processes.hpp"
#include "agent/job/backend.hpp"
#include "agent/job/find_guards.hpp"
#include "agent/launch/supervisor.hpp"
#include "agent/sweep/sweep.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

// Returns whether the process has this home directory. Practice servers share a machine and a user, but have
// separate home directories.
bool is_from_here(const Host& host, int pid) {
  return has_variable(host, pid, "HOME=" + host.home.string());
}

bool is_launch_or_sweep(const Host& host, int pid) {
  const std::string name = read_first_line(find_process_folder(host, pid) / "comm");
  return name == supervisor_name || name == sweep_supervisor_name;
}

class UnfinishedJobs {
 public:
  explicit UnfinishedJobs(Backends& backends) : backends_(backends) {}

  UnfinishedWork find() {
    for (const int pid : list_processes(host())) {
      if (pid != ::getpid() && find_owner(host(), pid) == ::geteuid()) {
        if (is_launch_or_sweep(host(), pid)) {
          add_process({.pid = pid});
        }
      }
    }
    for (const GuardProcess& guard : find_guards(host())) {
      add_process({.id = guard.id, .pid = guard.pid, .project = wire::to_line(guard.project.string(), 4000)});
    }
    for (const auto& [pid, id] : find_job_processes(host())) {
      add_process({.id = id, .pid = pid});
    }
    for (const std::string& name : list_names(backends_.folder().jobs)) {
      if (wire::is_id(name) && is_own_folder(backends_.folder().jobs / name)) {
        look_at_job(name);
      }
    }
    return std::move(reply_);
  }

 private:
  const Host& host() const { return backends_.host(); }

  // One process of each job is enough.
  void add_process(const wire::RunningJob& job) {
    const auto process = read_process(host(), *job.pid);
    if (process && !process->is_dead() && is_from_here(host(), *job.pid)) {
      add(job);
    }
  }
  void add(const wire::RunningJob& job) {
    if (!job.id || known_.insert(*job.id).second) {
      reply_.running.push_back(job);
    }
  }

  void look_at_job(const std::string& id) {
    std::optional<JobRecord> job = read_record(host(), backends_.folder(), id);
    if (!job || job->has_result()) {
      return;
    }
    wire::JobReport report{.id = id, .backend = job->backend};
    const JobState state = backends_.find_state(*job, Look::all);
    const bool has_begun = state.phase != wire::JobPhase::starting || job->supervisor || state.pid;
    switch (state.phase) {
      case wire::JobPhase::starting:
      case wire::JobPhase::queued:
      case wire::JobPhase::running:
        if (has_begun) {
          add({.id = id, .project = wire::to_line(backends_.folder().project.string(), 4000)});
          return;
        }
        break;
      case wire::JobPhase::unknown:
      case wire::JobPhase::rebooted:
        break;
      default:
        return;
    }
    report.phase = state.phase;
    report.reason = wire::to_line(state.reason, 1000);
    reply_.jobs.push_back(std::move(report));
  }

  Backends& backends_;
  std::set<std::string> known_{};
  UnfinishedWork reply_{};
};

}  // namespace

UnfinishedWork find_unfinished(const Host& host, const wire::JobsPlace& place) {
  Backends backends(host, JobsFolder::of(host, place));
  UnfinishedWork reply = UnfinishedJobs(backends).find();
  if (!reply.running.empty()) {
    // The last process of a job that has just ended may still be exiting.
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    backends.forget();
    reply = UnfinishedJobs(backends).find();
  }
  return reply;
}

}  // namespace remote::agent
