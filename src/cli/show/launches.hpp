#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <remote/history.hpp>

#include "cli/context.hpp"

// Several jobs in one sentence or row: the ranks of a launch.

namespace remote::cli {

// The jobs of one launch, or one job without a launch.
using Batch = std::vector<Job>;
// In the order of their first jobs.
std::vector<Batch> by_launch(const std::vector<Job>& jobs);
// "45-48", or "45" of one with a single job.
std::string keys_of(const LaunchSummary& launch);
// The job with the lowest rank.
const Job& first_rank(const Batch& batch);

// Where the jobs are, each server once, in the order of the jobs.
std::vector<std::string> servers_of(const std::vector<Job>& jobs);
// "node-1", "node-1, node-2"; of more than three: "32 servers".
std::string server_names(const std::vector<std::string>& names);
std::string server_names(const std::vector<Job>& jobs);
// "job 3 (rank 2 on node-2)", "jobs 45-48 (ranks 0-3 on node-1, node-2)".
std::string describe(const std::vector<Job>& jobs);

// A batch's state and why, in few words: "running", "running; rank 2 failed exit 3", "rank 2 failed exit 3".
std::string state_text(const Batch& batch);
// What a batch that is one job of Slurm used: "used 12% of 8 CPUs, 3.1 GiB of 64.0 GiB memory"; "" where that
// is not known.
std::string usage_text(const Batch& batch);
// For how long none of its ranks has written anything, where that is long and known.
std::optional<std::chrono::seconds> silence_of(const Batch& batch);
// That it stands still, or has been silent for long, with the command that shows why; "" where it does not.
std::string silence_notice(const Batch& batch);
// "2m" of 2m 27s, for columns and states.
std::string rough_duration(std::chrono::seconds duration);
// "12s ago": when a running job last wrote; "never", or "" where that is not known.
std::string age_of_output(const Job& job);
// How many of its ranks are in which state: "3 running, 1 ended".
std::string count_text(const Batch& batch);
bool has_ended(const Batch& batch);
// The same, and none has left processes behind.
bool is_over(const Batch& batch);
// " (ended, 2 processes left)"; empty where nothing is left.
std::string left_text(const Batch& batch);
// ", started from another folder"; "" if its record is not a copy.
std::string elsewhere_text(const Batch& batch);
// When the last of it ended, as far as that is known; for a batch that has ended.
Instant end_of(const Batch& batch);

// What to print of jobs, a line for all that say the same: "jobs 45-48 (ranks 0-3 on node-1): WORDS". Jobs of
// different launches never share a line.
class Lines {
 public:
  void add(const Job& job, const std::string& words);
  std::vector<std::string> text() const;

 private:
  std::vector<std::pair<std::string, std::vector<Job>>> lines_;
  std::map<std::pair<std::string, JobId>, std::size_t> places_;
};

// Says how jobs end while they are waited for: each by itself, but the ranks of a launch in one sentence when
// all have ended. The first failure among them is told at once.
class EndTeller {
 public:
  EndTeller(ui::Terminal& terminal, const std::vector<Job>& jobs);
  void take(const Job& job);
  // What was not told yet, unless a verdict tells it. `now`: the jobs as they are at the end.
  void finish(bool judged, const std::vector<Job>& now);

 private:
  struct Launch {
    std::size_t total = 0;
    Batch ended;
    bool failure_told = false;
    bool told = false;
  };
  void tell(Launch& launch);

  ui::Terminal& terminal_;
  bool one_launch_;  // then there may be a verdict at the end
  std::map<JobId, Launch> launches_;
};

}  // namespace remote::cli
