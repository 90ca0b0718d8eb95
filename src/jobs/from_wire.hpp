#pragma once

#include <string>
#include <vector>

#include <remote/instant.hpp>
#include <remote/job.hpp>
#include <remote/launch.hpp>

#include "wire/jobs.hpp"
#include "wire/launch.hpp"

// Converts values in an agent's answer to those of the public headers, and back.

namespace remote::jobs {

// Keeps the server's clock.
inline ExactInstant to_instant(wire::Moment moment) {
  return ExactInstant(moment);
}

wire::ProcessEnd to_process_end(const ExitStatus& status);

wire::JobsPlace to_place(const RemoteFolder& folder);

// Returns after_rank, after_loss, after_hang, by_launch or by_user.
JobReason to_reason(const wire::StoppedBy& by);
// All other kinds are converted to a stop by a user.
wire::StoppedBy to_stopped_by(const JobReason& reason);
JobReason to_reason(const wire::LifelineTrouble& trouble);

// Times are by the server's clock.
Attempt to_attempt(const wire::AttemptRecord& record);
Hung to_hung(const wire::HangRecord& record);

// "pid 4121 (python3, user ada, state D)", or the name of a container or Slurm job.
std::string describe(const wire::Survivor& survivor);
// Like describe(), with the reason why this process may belong to a job and was not stopped.
std::string describe_suspect(const wire::Survivor& survivor);

// If there are no causes, all are included. The death of the first server's lifeline counts as a loss.
std::vector<wire::RestartOn> to_restart_on(const std::vector<RestartCause>& causes);
wire::HangResponse to_hang_response(OnHang action);

}  // namespace remote::jobs
