#include "agent/job/backend.hpp"
#include "agent/slurm/queue.hpp"
#include "agent/slurm/state.hpp"
#include "agent/slurm/stopper.hpp"
#include "agent/slurm/tools.hpp"
#include "agent/slurm/usage.hpp"

// The backend "slurm": jobs are submitted to Slurm from a login node. Their processes run on other machines,
// which share the project's folder with this one.

namespace remote::agent {
namespace {

class SlurmBackend : public Backend {
 public:
  SlurmBackend(const Host& host, const JobsFolder& folder)
      : host_(host), tools_(host), queue_(host, tools_), states_(host, folder, tools_, queue_) {}

  JobState find_state(JobRecord& job, Look look) override { return states_.find(job, look); }
  std::unique_ptr<Stopper> stop(std::vector<StopTarget*> targets) override {
    return std::make_unique<SlurmStopper>(std::move(targets), tools_, queue_);
  }
  void report_usage(std::span<const JobRecord> jobs, std::span<wire::JobReport*> reports) override {
    // If no process can be started now, a later request reports the usage.
    if (find_process_limit(host_).empty()) {
      report_slurm_usage(tools_, jobs, reports);
    }
  }

 private:
  const Host& host_;
  SlurmTools tools_;
  SlurmQueue queue_;
  SlurmStates states_;
};

}  // namespace

std::unique_ptr<Backend> make_slurm_backend(const Host& host, const JobsFolder& folder) {
  return std::make_unique<SlurmBackend>(host, folder);
}

}  // namespace remote::agent
