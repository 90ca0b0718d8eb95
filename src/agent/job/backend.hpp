#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "agent/job/record.hpp"
#include "wire/jobs.hpp"

// Backends find the state of jobs and stop them: as processes of this machine ("local", and "labml" for jobs
// of labml_remote), or with Slurm.

namespace remote::agent {

// How thoroughly to check a job.
enum class Look {
  brief,  // runs no other program; may miss a process
  usual,
  all,  // also finds remaining processes of a finished job
};

struct JobState {
  wire::JobPhase phase = wire::JobPhase::unknown;
  std::optional<int> pid{};
  bool supervised = true;
  bool left = false;  // see wire::JobReport
  std::optional<int> leftovers{};
  bool unseen = false;
  std::string reason{};
};

// A job that is being stopped.
struct StopTarget {
  JobRecord job;
  int signalled = 0;                 // number of processes that received a signal
  std::optional<int> last_signal{};  // last signal sent to the main process
  bool keeps_supervisor = false;     // another attempt follows
};

// The remaining parts of the jobs that are being stopped.
struct Remains {
  bool has_members = false;  // processes, containers or Slurm jobs, which receive signals
  bool is_closing = false;   // supervisors and containers that are exiting without a signal
};

// Stops jobs of one backend: call look(), signal(), look() and so on. Not thread-safe.
class Stopper {
 public:
  Stopper() = default;
  virtual ~Stopper() = default;
  Stopper(const Stopper&) = delete;
  Stopper& operator=(const Stopper&) = delete;

  // Finds the remaining parts of the jobs. A quick look may miss processes that have left their process tree.
  virtual Remains look(bool quick) = 0;
  // Sends the signal to all members that have not received it, and continues stopped processes.
  virtual void signal(int number) = 0;
  // Sends SIGSTOP to all processes, so that the job cannot start new ones as fast as they are killed.
  virtual void freeze() {}
  // Waits until all processes of the last look have exited, at most for `longest`.
  virtual void wait(std::chrono::milliseconds longest) { std::this_thread::sleep_for(longest); }
  // Finds dead processes that still hold GPU memory, which count as survivors. Call it after the last look.
  virtual void find_memory_holders() {}
  // The time to wait after KILL.
  virtual std::chrono::milliseconds patience_after_kill() const { return std::chrono::milliseconds(1800); }
  // These return one job's processes from the last thorough look.
  virtual std::vector<wire::Survivor> survivors(const std::string& id) const = 0;
  virtual std::vector<wire::Survivor> suspects(const std::string& id) = 0;
};

// A backend, for one request. Caches the results of slow queries. Not thread-safe.
class Backend {
 public:
  Backend() = default;
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  // Sets job.end if the job turns out to have ended.
  virtual JobState find_state(JobRecord& job, Look look) = 0;
  // Clears cached data about processes.
  virtual void forget() {}
  // The targets must outlive the stopper, which counts signals in them.
  virtual std::unique_ptr<Stopper> stop(std::vector<StopTarget*> targets) = 0;
  // Adds the resource usage of finished jobs to their reports. Handles all jobs in one call, because each
  // query runs a program. `jobs` and `reports` have the same order.
  virtual void report_usage(std::span<const JobRecord> jobs, std::span<wire::JobReport*> reports) {
    static_cast<void>(jobs);
    static_cast<void>(reports);
  }
};

// The backends for one request, by name. Not thread-safe.
class Backends {
 public:
  Backends(const Host& host, JobsFolder folder) : host_(host), folder_(std::move(folder)) {}

  // Returns nullptr if this version of remote does not know the backend.
  Backend* find(const std::string& name);
  // Asks the backend of the job. The phase is `unknown` if this version does not know the backend.
  JobState find_state(JobRecord& job, Look look);
  const JobsFolder& folder() const { return folder_; }
  const Host& host() const { return host_; }
  void forget();

 private:
  const Host& host_;
  JobsFolder folder_;
  std::map<std::string, std::unique_ptr<Backend>> known_;
};

// Defined in local.cpp, labml.cpp and ../slurm/slurm.cpp.
std::unique_ptr<Backend> make_local_backend(const Host& host, const JobsFolder& folder);
std::unique_ptr<Backend> make_labml_backend(const Host& host, const JobsFolder& folder);
std::unique_ptr<Backend> make_slurm_backend(const Host& host, const JobsFolder& folder);

}  // namespace remote::agent
