#include <set>
#include <utility>

#include "agent/container/boxes.hpp"
#include "agent/gpus/memory_holders.hpp"
#include "agent/host/run.hpp"
#include "agent/job/backend.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/journal.hpp"
#include "agent/job/local_stopper.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

// The backend `local`: a job consists of a supervisor and processes on this machine.

namespace remote::agent {
namespace {

// Processes that have a job's id in their environment.
struct Carriers {
  int count = 0;
  int pid = 0;  // any of them
};

class LocalBackend : public Backend {
 public:
  LocalBackend(const Host& host, const JobsFolder& folder)
      : host_(host), folder_(folder), boot_(read_boot_id(host)), boxes_(host) {}

  JobState find_state(JobRecord& job, Look look) override;
  void forget() override {
    carriers_.reset();
    holders_.reset();
    boxes_.forget();
  }
  std::unique_ptr<Stopper> stop(std::vector<StopTarget*> targets) override {
    return make_local_stopper(host_, folder_, std::move(targets));
  }

 private:
  JobState find_ended_state(const JobRecord& job, Look look);
  JobState find_unsupervised_state(JobRecord& job, Look look);
  JobState find_state_without_trace(JobRecord& job, Look look);
  void check_leftovers(const JobRecord& job, Look look, JobState& state);
  bool has_survivor(const JobRecord& job, JobState& state);
  void check_queue(const JobRecord& job, JobState& state) const;
  Carriers find_carriers(const JobRecord& job);
  bool holds_gpu(int pid);
  bool is_box_up(const JobRecord& job, JobState& state);
  // Reads the record again, and returns whether it has a result now.
  bool has_ended_since(JobRecord& job) const;

  const Host& host_;
  const JobsFolder& folder_;
  const std::string boot_;
  std::optional<std::map<std::string, std::vector<int>>> carriers_{};  // by job
  std::optional<std::set<int>> holders_{};                             // of GPU memory
  BoxList boxes_;
};

std::optional<int> find_main_pid(const JobRecord& job) {
  return job.main ? std::optional(job.main->pid) : std::nullopt;
}

JobState LocalBackend::find_state(JobRecord& job, Look look) {
  if (job.has_result()) {
    return find_ended_state(job, look);
  }
  JobState state{.pid = find_main_pid(job)};
  if (job.is_claimed) {
    state.phase = wire::JobPhase::none;
    return state;
  }
  if (!job.supervisor) {
    state.phase = wire::JobPhase::starting;
    if (const Carriers found = look == Look::all ? find_carriers(job) : Carriers(); found.count > 0) {
      state.pid = found.pid;
    }
    return state;
  }
  if (job.supervisor->boot != boot_) {
    state.phase = wire::JobPhase::rebooted;
    return state;
  }
  if (is_alive(host_, job.supervisor->id)) {
    state.phase = wire::JobPhase::running;
    if (!job.main) {
      state.phase = wire::JobPhase::starting;
      if (exists(job.folder / "spare")) {
        state.phase = wire::JobPhase::queued;
        state.reason = "spare, until it replaces a server";
      }
    }
    check_queue(job, state);
    return state;
  }
  // Read the record again, because a supervisor writes the result before it exits.
  return has_ended_since(job) ? find_ended_state(job, look) : find_unsupervised_state(job, look);
}

JobState LocalBackend::find_ended_state(const JobRecord& job, Look look) {
  JobState state{.phase = wire::JobPhase::ended, .pid = find_main_pid(job)};
  if (job.never_started()) {
    state.phase = wire::JobPhase::none;
    return state;
  }
  // On a full disk, only the result has reserved space. The supervisor then cannot record a pid, so it runs
  // no command, and job.err cannot contain an error.
  if (job.end && job.end->how == wire::ProcessEnd::exited(127) && job.end->by == "supervisor" && !job.main) {
    state.reason = "it did not start, because its folder cannot be written: is the disk full?";
  }
  const bool is_of_this_boot = job.supervisor ? job.supervisor->boot == boot_ : look == Look::all;
  if (look != Look::brief && is_of_this_boot) {
    check_leftovers(job, look, state);
  }
  return state;
}

// A finished job counts as running if a process has survived its stop, or with Look::all, if any process is
// alive. Otherwise, living processes are only counted as leftovers.
void LocalBackend::check_leftovers(const JobRecord& job, Look look, JobState& state) {
  const std::optional<int> main = state.pid;
  state.left = has_survivor(job, state);
  const bool was_asked_to_end = job.recorded.stop.has_value();
  if (!state.left) {
    const Carriers found = find_carriers(job);
    if (found.count > 0 && (was_asked_to_end || look == Look::all)) {
      state.left = true;
      state.pid = found.pid;
    } else if (found.count > 0) {
      state.leftovers = found.count;
    }
  }
  if (!state.left && look == Look::all && is_box_up(job, state)) {
    state.left = true;
    state.pid = main;
  }
  if (state.left) {
    state.phase = wire::JobPhase::running;
    state.leftovers.reset();
    state.unseen = false;
  }
}

// Returns whether a recorded survivor still exists, and stores its pid in the state.
bool LocalBackend::has_survivor(const JobRecord& job, JobState& state) {
  for (const wire::RecordedSurvivor& survivor : job.recorded.survivors) {
    if (!survivor.process) {
      if (survivor.name.starts_with("container ") && is_box_up(job, state)) {
        return true;
      }
      continue;
    }
    const auto& [pid, start] = *survivor.process;
    if (start == 0 ? pid > 0 && holds_gpu(pid) : is_alive(host_, {pid, start})) {
      state.pid = pid;
      return true;
    }
  }
  return false;
}

// Sets the phase to `queued` if the job waits for its lease. The first job of the launch on this server
// records the position in the queue.
void LocalBackend::check_queue(const JobRecord& job, JobState& state) const {
  if (!exists(job.folder / "queue")) {
    return;
  }
  state.phase = wire::JobPhase::queued;
  state.reason.clear();
  const std::string first(trim(read_job_line(job.folder / "queue").value_or("")));
  if (wire::is_id(first)) {
    state.reason = wire::to_line(trim(read_job_line(folder_.jobs / first / "turn").value_or("")), 1000);
  }
}

// The supervisor and its direct children do not count.
Carriers LocalBackend::find_carriers(const JobRecord& job) {
  if (!carriers_) {
    carriers_.emplace();
    for (const auto& [pid, id] : find_job_processes(host_)) {
      (*carriers_)[id].push_back(pid);
    }
  }
  Carriers carriers;
  const auto found = carriers_->find(job.id);
  if (found == carriers_->end()) {
    return carriers;
  }
  const int supervisor = job.supervisor ? job.supervisor->id.pid : 0;
  for (const int pid : found->second) {
    const auto process = pid != supervisor ? read_process(host_, pid) : std::nullopt;
    if (process && !process->is_dead() && (supervisor == 0 || process->parent != supervisor)) {
      ++carriers.count;
      carriers.pid = pid;
    }
  }
  return carriers;
}

// Returns whether this process is dead but still holds GPU memory. Querying the driver is slow.
bool LocalBackend::holds_gpu(int pid) {
  if (!holders_) {
    holders_ = find_memory_holders(host_, std::chrono::seconds(2));
  }
  if (!holders_->contains(pid)) {
    return false;
  }
  const auto process = read_process(host_, pid);
  return !process || process->is_dead();
}

bool LocalBackend::is_box_up(const JobRecord& job, JobState& state) {
  try {
    return boxes_.find(job) == BoxState::up;
  } catch (const CannotStart&) {
    state.unseen = true;
    return false;
  }
}

bool LocalBackend::has_ended_since(JobRecord& job) const {
  std::optional<JobRecord> now = read_record(host_, folder_, job.id);
  if (!now || !now->has_result()) {
    return false;
  }
  job = *std::move(now);
  return true;
}

JobState LocalBackend::find_unsupervised_state(JobRecord& job, Look look) {
  JobState state{.phase = wire::JobPhase::running, .pid = find_main_pid(job), .supervised = false};
  if (job.main && is_alive(host_, *job.main)) {
    check_queue(job, state);
    return state;
  }
  if (look == Look::brief) {
    return find_state_without_trace(job, look);
  }
  if (const Carriers found = find_carriers(job); found.count > 0) {
    state.pid = found.pid;
    check_queue(job, state);
    return state;
  }
  if (is_box_up(job, state)) {
    return state;
  }
  if (state.unseen) {
    state.phase = wire::JobPhase::unknown;
    state.unseen = false;
    state.reason = find_process_limit(host_);
    if (state.reason.empty()) {
      state.reason = "no process can be started";
    }
    return state;
  }
  return find_state_without_trace(job, look);
}

// Finds the state of a job without processes and without a result.
JobState LocalBackend::find_state_without_trace(JobRecord& job, Look look) {
  JobState state{.phase = wire::JobPhase::gone, .pid = find_main_pid(job), .supervised = false};
  // If a stop is in progress, it is going to record the end.
  for (const wire::RecordedProcess& stopper : read_history(host_, job.folder, job.id).stoppers) {
    if (is_alive(host_, {stopper.pid, stopper.start})) {
      state.phase = wire::JobPhase::running;
      return state;
    }
  }
  return has_ended_since(job) ? find_ended_state(job, look) : state;
}

}  // namespace

std::unique_ptr<Backend> make_local_backend(const Host& host, const JobsFolder& folder) {
  return std::make_unique<LocalBackend>(host, folder);
}

}  // namespace remote::agent
