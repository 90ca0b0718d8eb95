#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <remote/history.hpp>

#include "cli/context.hpp"

// Several jobs, such as the ranks of a launch, in one sentence or row.

namespace remote::cli {

// The jobs of one launch, or a single job without a launch.
using Batch = std::vector<Job>;
// In the order of their first jobs.
std::vector<Batch> by_launch(const std::vector<Job>& jobs);
// "45-48", or "45" for a launch with a single job.
std::string keys_of(const LaunchSummary& launch);
// The job with the lowest rank.
const Job& first_rank(const Batch& batch);

// The servers of the jobs, each once, in job order.
std::vector<std::string> servers_of(const std::vector<Job>& jobs);
// "node-1", "node-1, node-2"; for more than three: "32 servers".
std::string server_names(const std::vector<std::string>& names);
std::string server_names(const std::vector<Job>& jobs);
// "job 3 (rank 2 on node-2)", "jobs 45-48 (ranks 0-3 on node-1, node-2)".
std::string describe(const std::vector<Job>& jobs);

// A batch's state with the reason, in few words: "running", "running; rank 2 failed exit 3", "rank 2 failed
// exit 3".
std::string state_text(const Batch& batch);
// The resources that a batch with a single Slurm job used: "used 12% of 8 CPUs, 3.1 GiB of 64.0 GiB memory";
// "" if unknown.
std::string usage_text(const Batch& batch);
// How long none of its ranks has written anything; nullopt if that is short or unknown.
std::optional<std::chrono::seconds> silence_of(const Batch& batch);
// A notice that it hangs, or has been silent for long, with the command that shows why; "" if neither.
std::string silence_notice(const Batch& batch);
// Rounded, for columns and states: "2m" for 2m 27s.
std::string rough_duration(std::chrono::seconds duration);
// When a running job last wrote output: "12s ago"; "never", or "" if unknown.
std::string age_of_output(const Job& job);
// The number of its ranks in each state: "3 running, 1 ended".
std::string count_text(const Batch& batch);
bool has_ended(const Batch& batch);
// Like has_ended(), but also without leftover processes.
bool is_over(const Batch& batch);
// " (ended, 2 processes left)"; empty if nothing is left.
std::string left_text(const Batch& batch);
// ", started from another folder"; "" if its record is not a copy.
std::string elsewhere_text(const Batch& batch);
// When the last of its jobs ended, as far as known; for a batch that has ended.
Instant end_of(const Batch& batch);

// Lines of text about jobs; jobs with the same text share a line: "jobs 45-48 (ranks 0-3 on node-1): WORDS".
// Jobs of different launches never share a line.
class Lines {
 public:
  void add(const Job& job, const std::string& words);
  std::vector<std::string> text() const;

 private:
  std::vector<std::pair<std::string, std::vector<Job>>> lines_;
  std::map<std::pair<std::string, JobId>, std::size_t> places_;
};

// Reports the ends of jobs while waiting for them: each job separately, but the ranks of a launch in one
// sentence when all have ended. The first failure among them is reported immediately.
class EndTeller {
 public:
  EndTeller(ui::Terminal& terminal, const std::vector<Job>& jobs);
  void take(const Job& job);
  // Reports the remaining ones, unless a verdict covers them. `now`: the final state of the jobs.
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
