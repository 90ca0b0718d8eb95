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

// What is followed of each job, and to whom it is handed over.

namespace remote::project {

class Core;

// One output that is followed: a job's own, or that of one rank which has files of its own.
struct Part {
  std::size_t job = 0;        // by index into the jobs given
  std::optional<int> file{};  // the rank whose own files are read; nullopt: what the job itself writes
  std::optional<int> rank{};  // whose a line without a label is
  bool labelled = false;      // its lines may have labels
  bool no_ranks = false;      // of lines that may have labels, only those without
};

// The parts of these jobs. Under Slurm all ranks but rank 0 have files of their own; where torchrun's agents
// started them, rank 0 has as well. Of more than 64 ranks not each is followed, but what the job itself
// writes.
std::vector<Part> parts_of(const Core& core, const std::vector<Job>& jobs, const FollowRequest& request);

// Whether the output of this rank is asked for.
bool wants(const FollowRequest& request, int rank);

// Hands over what is written, by index into the parts, with the rank that wrote it. One thread at a time.
class Output {
 public:
  // Both outlive it. Throws Error (usage) for what is not understood of the request.
  Output(std::vector<Part> parts, const std::vector<Job>& jobs, const FollowRequest& request);
  void take(std::size_t part, OutputStream stream, std::string_view data);
  // The part has come to its end, and the job is so now. FollowRequest::on_ended is told when all parts of
  // the job have, and no line of them waits for its like.
  void finish(std::size_t part, const Job& job);
  // With FollowRequest::fold, to be called again and again: hands over what has waited long enough.
  void give_due();
  // The end of all parts.
  void give_all();

 private:
  using Source = std::tuple<std::size_t, OutputStream, std::optional<int>>;  // part, stream, rank

  RankLines::Give giver(std::size_t part, OutputStream stream);
  // Whose lines of this part are folded.
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
  std::vector<std::array<RankLines, 2>> labels_;   // by part: of stdout and stderr
  std::map<Source, LineAssembler> whole_;          // where whole lines are handed over
  std::vector<int> open_;                          // by job: how many parts have not come to their ends
  std::vector<std::pair<std::size_t, Job>> ends_;  // that are not told yet
};

}  // namespace remote::project
