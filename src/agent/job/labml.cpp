#include <fcntl.h>
#include <unistd.h>

#include "agent/host/processes.hpp"
#include "agent/job/backend.hpp"
#include "agent/job/local_stopper.hpp"
#include "base/format.hpp"

// The backend `labml`: jobs that labml_remote started in the same project. Their folders contain job.out,
// job.err and job.pid, which has only the pid. Because pids are reused, a process counts only if it has the
// job's files open.

namespace remote::agent {
namespace {

class LabmlBackend : public Backend {
 public:
  LabmlBackend(const Host& host, const JobsFolder& folder) : host_(host), folder_(folder) {}

  JobState find_state(JobRecord& job, Look look) override;
  std::unique_ptr<Stopper> stop(std::vector<StopTarget*> targets) override {
    return make_local_stopper(host_, folder_, std::move(targets));
  }

 private:
  const Host& host_;
  const JobsFolder& folder_;
};

JobState LabmlBackend::find_state(JobRecord& job, Look /*look*/) {
  JobState state{.phase = wire::JobPhase::gone};
  if (job.main) {
    state.pid = job.main->pid;
  }
  if (job.has_result()) {
    state.phase = wire::JobPhase::ended;
    return state;
  }
  const auto process = job.main ? read_process(host_, job.main->pid) : std::nullopt;
  if (!process || process->is_dead()) {
    return state;
  }
  const Path open_files = find_process_folder(host_, process->id.pid) / "fd";
  if (is_same_file(open_files / "1", job.folder / "job.out") ||
      is_same_file(open_files / "2", job.folder / "job.err")) {
    state.phase = wire::JobPhase::running;
  } else if (::faccessat(AT_FDCWD, open_files.c_str(), X_OK, AT_EACCESS) != 0 ||
             !exists(job.folder / "job.out")) {
    state.phase = wire::JobPhase::unknown;
    state.reason =
        text::format("cannot determine whether process {} still belongs to the job", process->id.pid);
  }
  return state;
}

}  // namespace

std::unique_ptr<Backend> make_labml_backend(const Host& host, const JobsFolder& folder) {
  return std::make_unique<LabmlBackend>(host, folder);
}

}  // namespace remote::agent
