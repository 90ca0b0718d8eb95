#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/job/record.hpp"
#include "agent/slurm/queue.hpp"
#include "agent/slurm/tools.hpp"
#include "wire/jobs.hpp"

// How Slurm jobs ended, according to squeue, sacct and the notes in their folders.

namespace remote::agent {

// Writes the file slurm.NAME to the job's folder. Returns false on failure.
bool put_slurm_note(const JobRecord& job, const std::string& name, const std::string& text);

// Whether it is a time as printed by squeue, such as "2024-05-01T12:00:00", and not "NONE" or the like.
bool is_slurm_time(std::string_view text);

// Converts a time of squeue, which is in the server's time zone, to milliseconds since the epoch; nullopt if
// it is not a time. Runs `date`.
std::optional<wire::Moment> read_slurm_time(const SlurmTools& tools, std::string text);

// The end of a job without a result; nullopt if its exit status is unknown, for example after a node failure.
std::optional<wire::JobEnd> find_slurm_end(const SlurmTools& tools, const SlurmRow& row);

struct AccountedEnd {
  std::string state;
  std::optional<wire::JobEnd> end;
};

// Queries sacct about jobs that squeue has forgotten. Stops after a failure, or if it takes too long.
class SlurmAccounts {
 public:
  explicit SlurmAccounts(const SlurmTools& tools) : tools_(tools) {}

  // nullopt if accounting is not available, or the job has not ended.
  std::optional<AccountedEnd> find(const std::string& number);

 private:
  const SlurmTools& tools_;
  bool has_failed_ = false;
  std::chrono::steady_clock::duration spent_{};
};

// Records the state and the reason, which Slurm forgets after some minutes, and a stop by scancel.
void keep_slurm_end(const Host& host, const JobRecord& job, const std::string& state,
                    const std::string& reason);

// Why the job ended, if its exit status does not show that; otherwise "". Running out of memory is recorded
// in the folder instead.
std::string explain_slurm_end(const JobRecord& job);

}  // namespace remote::agent
