#include "project/follow_output.hpp"

#include <utility>

#include "jobs/places.hpp"
#include "project/core.hpp"

namespace remote::project {
namespace {

// More would be too many processes on a login node, which others use as well.
constexpr int most_ranks = 64;

}  // namespace

std::vector<Part> parts_of(const Core& core, const std::vector<Job>& jobs, const FollowRequest& request) {
  const std::optional<int> rank = request.first_rank_only ? std::optional(0) : request.rank;
  std::vector<Part> parts;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    const bool has_files = ranks_of(job) > 1 && jobs::is_of_slurm(core.config, job);
    const int first = job.rank.value_or(0);
    Part part{.job = i, .file = {}, .rank = {}, .only = {}};
    if (request.each_rank && has_files && ranks_of(job) <= most_ranks) {
      part.rank = job.labelled ? std::nullopt : std::optional(first);
      part.only = job.labelled ? std::optional(no_rank) : std::nullopt;
      parts.push_back(part);
      for (int one = first + (job.labelled ? 0 : 1); one < first + ranks_of(job); ++one) {
        parts.push_back({.job = i, .file = one, .rank = one, .only = {}});
      }
      continue;
    }
    if (has_files && request.rank && *request.rank != first) {
      part.file = request.rank;
    } else if (rank && job.labelled) {
      part.only = rank;
    }
    parts.push_back(part);
  }
  return parts;
}

Output::Output(std::vector<Part> parts, OnOutput of_jobs, decltype(FollowRequest::on_rank_output) of_ranks)
    : parts_(std::move(parts)), of_jobs_(std::move(of_jobs)), of_ranks_(std::move(of_ranks)) {
  for (const Part& part : parts_) {
    filters_.emplace_back();
    if (part.only) {
      filters_.back() = {RankLines(*part.only), RankLines(*part.only)};
    }
  }
}

void Output::take(std::size_t part, OutputStream stream, std::string_view data) {
  if (RankLines* lines = filter(part, stream)) {
    hand_over(part, stream, lines->take(data));
  } else {
    hand_over(part, stream, data);
  }
}

void Output::finish(std::size_t part) {
  for (const OutputStream stream : {OutputStream::out, OutputStream::err}) {
    if (RankLines* lines = filter(part, stream)) {
      hand_over(part, stream, lines->finish());
    }
  }
}

RankLines* Output::filter(std::size_t part, OutputStream stream) {
  std::vector<RankLines>& lines = filters_[part];
  return lines.empty() ? nullptr : &lines[stream == OutputStream::out ? 0 : 1];
}

void Output::hand_over(std::size_t part, OutputStream stream, std::string_view data) {
  const Part& from = parts_[part];
  if (data.empty()) {
    return;
  }
  if (!from.rank) {
    if (of_jobs_) {
      of_jobs_(from.job, stream, data);
    }
  } else if (of_ranks_) {
    of_ranks_(from.job, *from.rank, stream, data);
  }
}

}  // namespace remote::project
