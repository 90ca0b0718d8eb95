#include "project/follow_output.hpp"

#include <algorithm>
#include <utility>

#include "jobs/job_servers.hpp"
#include "project/core.hpp"

namespace remote::project {
namespace {

// A higher limit would start too many processes on a login node, which is shared with other users.
constexpr int most_ranks = 64;

}  // namespace

std::vector<Part> parts_of(const Core& core, const std::vector<Job>& jobs, const FollowRequest& request) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    const bool has_files = ranks_of(job) > 1 && jobs::is_of_slurm(core.config, job);
    const int first = job.rank.value_or(0);
    Part part{.job = i, .labelled = job.labelled};
    if (ranks_of(job) == 1) {
      part.rank = job.rank;
    }
    if (request.each_rank && has_files && ranks_of(job) <= most_ranks) {
      part.rank = job.labelled ? std::nullopt : std::optional(first);
      part.no_ranks = job.labelled;
      parts.push_back(part);
      for (int one = first + (job.labelled ? 0 : 1); one < first + ranks_of(job); ++one) {
        parts.push_back({.job = i, .file = one, .rank = one});
      }
      continue;
    }
    const std::size_t before = parts.size();
    for (const int one : has_files ? request.ranks : std::vector<int>()) {
      if (one > first && one < first + ranks_of(job)) {
        parts.push_back({.job = i, .file = one, .rank = one});
      }
    }
    if (parts.size() == before || std::ranges::find(request.ranks, first) != request.ranks.end()) {
      parts.push_back(part);
    }
  }
  return parts;
}

Output::Output(std::vector<Part> parts, const std::vector<Job>& jobs, const FollowRequest& request)
    : parts_(std::move(parts)),
      jobs_(jobs),
      request_(request),
      pattern_(request.grep.empty() ? std::nullopt : std::optional<LinePattern>(request.grep)),
      fold_([this](std::span<const int> ranks, OutputStream stream, std::string_view line) {
        give_folded(ranks, stream, line);
      }),
      labels_(parts_.size()),
      open_(jobs.size(), 0) {
  for (const Part& part : parts_) {
    ++open_[part.job];
    for (const int rank : folded_ranks(part)) {
      fold_.open(rank);
      const auto [known, is_new] = job_of_rank_.emplace(rank, part.job);
      if (!is_new && known->second != part.job) {
        throw Error::usage("cannot fold the output", "the jobs are of several launches", "name one launch");
      }
    }
  }
}

bool wants(const FollowRequest& request, int rank) {
  return request.ranks.empty() || std::ranges::find(request.ranks, rank) != request.ranks.end();
}

std::vector<int> Output::folded_ranks(const Part& part) const {
  if (!request_.fold || (part.rank && !wants(request_, *part.rank))) {
    return {};
  }
  if (part.rank) {
    return {*part.rank};
  }
  std::vector<int> ranks;
  const Job& job = jobs_[part.job];
  for (int i = 0; part.labelled && !part.no_ranks && i < ranks_of(job); ++i) {
    if (const int rank = job.rank.value_or(0) + i; wants(request_, rank)) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

RankLines::Give Output::giver(std::size_t index, OutputStream stream) {
  return [this, index, stream](std::optional<int> label, std::string_view text) {
    const Part& part = parts_[index];
    if (!request_.on_output || (label && (part.no_ranks || !wants(request_, *label)))) {
      return;
    }
    const std::optional<int> rank = label ? label : part.rank;
    if (!pattern_ && !request_.fold) {
      request_.on_output({.job = part.job, .rank = rank, .stream = stream, .text = text});
      return;
    }
    const Source source(index, stream, rank);
    give_lines(source, whole_.try_emplace(source, "").first->second.take(text));
  };
}

// Passes on whole lines, including their newlines.
void Output::give_lines(const Source& from, std::string_view lines) {
  const auto& [part, stream, rank] = from;
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n') + 1;
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end);
    if (pattern_ && !pattern_->is_in(line.substr(0, end - 1))) {
      continue;
    }
    if (rank && job_of_rank_.contains(*rank)) {
      fold_.take(*rank, stream, std::string(line), LineFold::Clock::now());
    } else {
      request_.on_output({.job = parts_[part].job, .rank = rank, .stream = stream, .text = line});
    }
  }
}

void Output::give_folded(std::span<const int> ranks, OutputStream stream, std::string_view line) {
  request_.on_output({.job = job_of_rank_.at(ranks.front()),
                      .rank = ranks.front(),
                      .stream = stream,
                      .text = line,
                      .ranks = ranks});
}

void Output::take(std::size_t part, OutputStream stream, std::string_view data) {
  const RankLines::Give give = giver(part, stream);
  if (parts_[part].labelled) {
    labels_[part][stream == OutputStream::out ? 0 : 1].take(data, give);
  } else if (!data.empty()) {
    give(std::nullopt, data);
  }
}

void Output::finish(std::size_t part, const Job& job) {
  labels_[part][0].finish(giver(part, OutputStream::out));
  labels_[part][1].finish(giver(part, OutputStream::err));
  for (auto& [source, lines] : whole_) {
    if (std::get<std::size_t>(source) == part) {
      give_lines(source, lines.finish());
    }
  }
  for (const int rank : folded_ranks(parts_[part])) {
    fold_.close(rank);
  }
  const std::size_t index = parts_[part].job;
  if (--open_[index] == 0 && request_.on_ended) {
    ends_.emplace_back(index, job);
  }
  tell_ends();
}

void Output::give_due() {
  fold_.give_due(LineFold::Clock::now());
  tell_ends();
}

void Output::give_all() {
  fold_.give_all();
  tell_ends();
}

void Output::tell_ends() {
  std::erase_if(ends_, [&](const auto& end) {
    const bool now = std::ranges::none_of(
        job_of_rank_, [&](const auto& one) { return one.second == end.first && fold_.holds(one.first); });
    if (now) {
      request_.on_ended(end.first, end.second);
    }
    return now;
  });
}

}  // namespace remote::project
