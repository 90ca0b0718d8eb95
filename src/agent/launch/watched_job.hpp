#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "agent/host/descriptor.hpp"
#include "agent/host/host.hpp"
#include "agent/job/record.hpp"
#include "rules/launch_policy.hpp"

namespace remote::agent {

struct JobLook {
  bool has_ended = false;
  // The failure, if the job failed. For agents and mpirun, it is that of the worker that failed first, unless
  // it is a consequence of a peer's failure. `server` and `mark` are empty. The kind `gone` means that
  // nothing is recorded.
  std::optional<wire::RankFailure> failure{};
  // A failed rank whose mpirun or daemon is still running.
  std::optional<wire::RankFailure> failed_rank{};
  std::optional<rules::Seconds> stopped_for{};  // if a user stopped it: the time from the stop until it ended
  std::optional<rules::Round> round{};          // the last recorded end of an attempt
};

// One job of a launch on this server. Its state is read from its folder (docs/protocol.md). The job can also
// write there, so all files are untrusted.
class WatchedJob {
 public:
  // `is_mpi`: the job is mpirun, or waits for its order, so its own exit code is determined by a rank.
  WatchedJob(const Host& host, const JobsFolder& folder, std::string id, bool is_mpi, bool has_restarts);

  const std::string& id() const { return id_; }
  const Path& folder() const { return folder_; }
  // The FIFO `.alive`, which the job's guard holds open for writing. It becomes readable when the guard exits
  // and when an attempt ends. -1 if there is none.
  int fifo() const { return fifo_.get(); }
  // Reads the FIFO. Closes it at EOF; after that, only look() detects the end of the job.
  void drain_fifo();
  void close_fifo() { fifo_.reset(); }

  // Reads the job's files, which may be on slow storage, and appends to `marks` (below). Any thread, but only
  // one at a time.
  JobLook look(int rank);

  // The recorded end, for the verdict.
  rules::JobResult read_result() const;
  // The output files of the failed rank, relative to the folder, the most informative first. `worker` is the
  // rank in JobLook::failure, if it is a worker of this job.
  static std::vector<std::string> list_output_files(std::optional<int> worker);
  // Returns the worker of an agent or mpirun that failed first; nullopt if there is none.
  std::optional<wire::RankFailure> find_failed_worker() const;

 private:
  bool may_run(bool is_visible);
  std::optional<wire::RankFailure> describe_failure(const rules::JobHistory& recorded, int rank) const;
  bool follows_peer(int rank, const wire::ProcessEnd& end) const;
  // Records the current sizes of the outputs, every ten seconds at most, for `job-tail --since`.
  void mark_output();

  const Host& host_;
  JobsFolder jobs_;
  std::string id_;
  Path folder_;
  bool is_mpi_;
  bool has_restarts_;
  Descriptor fifo_;
  // The last recorded processes, in case the folder becomes invisible.
  std::optional<Supervisor> supervisor_;
  std::optional<ProcessId> main_;
  std::pair<off_t, off_t> marked_sizes_;  // sizes of job.out and job.err
  std::chrono::milliseconds marked_at_{};
};

// Conversions between the reason of an end and the record of a stop. The second one returns nullopt unless
// the cause is a rank, a loss or a hang.
wire::StoppedBy to_stopped_by(const wire::EndReason& reason);
std::optional<wire::EndReason> to_end_reason(const wire::StoppedBy& by);

}  // namespace remote::agent
