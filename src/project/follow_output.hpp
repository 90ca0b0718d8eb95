#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include <remote/job.hpp>
#include <remote/project.hpp>

#include "base/line_assembler.hpp"
#include "base/line_pattern.hpp"
#include "project/line_fold.hpp"
#include "project/rank_lines.hpp"

// Selects the output to follow for each job, and passes it on.

namespace remote::project {

class Core;

// An output to follow: that of a job, or that of a rank with separate files.
struct Part {
  std::size_t job = 0;        // index in the given jobs
  std::optional<int> file{};  // the rank whose own files are read; nullopt: the output of the job
  std::optional<int> rank{};  // the rank that a line without a label belongs to
  bool labelled = false;      // its lines may have labels
  bool no_ranks = false;      // of lines that may have labels, use only those without
};

// The parts of these jobs. Under Slurm all ranks except rank 0 have separate files; if they were started by
// torchrun's agents, rank 0 has too. With more than 64 ranks, follows the output of the job instead of each
// rank.
std::vector<Part> parts_of(const Core& core, const std::vector<Job>& jobs, const FollowRequest& request);

// Whether the output of this rank is requested.
bool wants(const FollowRequest& request, int rank);

// Passes on output, by index of the part, with the rank that wrote it. Not thread-safe.
class Output {
 public:
  // `jobs` and `request` must outlive it. Throws Error (usage) for an invalid pattern in the request.
  Output(std::vector<Part> parts, const std::vector<Job>& jobs, const FollowRequest& request);
  void take(std::size_t part, OutputStream stream, std::string_view data);
  // The part has ended; `job` is the current state. Calls FollowRequest::on_ended when all parts of the job
  // have ended and none of its lines are waiting to be folded.
  void finish(std::size_t part, const Job& job);
  // With FollowRequest::fold, to be called regularly: passes on lines that have waited long enough.
  void give_due();
  // Call when all parts have ended.
  void give_all();

 private:
  using Source = std::tuple<std::size_t, OutputStream, std::optional<int>>;  // part, stream, rank

  RankLines::Give giver(std::size_t part, OutputStream stream);
  // The ranks in this part whose lines are folded.
  std::vector<int> folded_ranks(const Part& part) const;
  void give_lines(const Source& from, std::string_view lines);
  void give_folded(std::span<const int> ranks, OutputStream stream, std::string_view line);
  void tell_ends();

  const std::vector<Part> parts_;
  const std::vector<Job>& jobs_;
  const FollowRequest& request_;
  const std::optional<LinePattern> pattern_;
  LineFold fold_;
  std::map<int, std::size_t> job_of_rank_;
  std::vector<std::array<RankLines, 2>> labels_;   // by part: for stdout and stderr
  std::map<Source, LineAssembler> whole_;          // if whole lines are passed on
  std::vector<int> open_;                          // by job: number of parts that have not ended
  std::vector<std::pair<std::size_t, Job>> ends_;  // not yet reported
};

}  // namespace remote::project
