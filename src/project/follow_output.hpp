#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <remote/job.hpp>
#include <remote/project.hpp>

#include "project/rank_lines.hpp"

// What is followed of each job, and to whom it is handed over.

namespace remote::project {

class Core;

// One output that is followed: a job's own, or that of one rank which has files of its own.
struct Part {
  std::size_t job = 0;      // by index into the jobs given
  std::optional<int> file;  // the rank whose own files are read; nullopt: what the job itself writes
  std::optional<int> rank;  // to be told with it, with FollowRequest::each_rank
  std::optional<int> only;  // of lines with a label, only those of this rank
};

constexpr int no_rank = -1;  // as Part::only: the lines without a label

// The parts of these jobs. Under Slurm all ranks but rank 0 have files of their own; where torchrun's agents
// started them, rank 0 has as well. Of more than 64 ranks not each is followed, but what the job itself
// writes.
std::vector<Part> parts_of(const Core& core, const std::vector<Job>& jobs, const FollowRequest& request);

// Hands over what is written, by index into the parts; of lines with labels only what is wanted. One thread
// at a time.
class Output {
 public:
  Output(std::vector<Part> parts, OnOutput of_jobs, decltype(FollowRequest::on_rank_output) of_ranks);
  void take(std::size_t part, OutputStream stream, std::string_view data);
  // The part has come to its end: what may have been the beginning of a label is none.
  void finish(std::size_t part);

 private:
  RankLines* filter(std::size_t part, OutputStream stream);
  void hand_over(std::size_t part, OutputStream stream, std::string_view data);

  std::vector<Part> parts_;
  OnOutput of_jobs_;
  decltype(FollowRequest::on_rank_output) of_ranks_;
  std::vector<std::vector<RankLines>> filters_;  // by part: of stdout and stderr, or none
};

}  // namespace remote::project
