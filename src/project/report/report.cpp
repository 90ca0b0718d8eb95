// A launch's report: asks the servers how its jobs are, brings their output, and reads it.

#include "project/report/report.hpp"

#include <algorithm>
#include <deque>
#include <fstream>
#include <map>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "project/rank_lines.hpp"
#include "project/report/numbers.hpp"

namespace remote::project {
namespace {

// Points of all curves together, so that a page of many ranks can still be opened.
constexpr std::size_t most_points = 300000;
constexpr std::size_t longest_line = 2000;

struct RankOutput {
  std::deque<std::string> out;
  std::deque<std::string> err;
  CurveReader numbers;
};

// Hands over each line. Of one that is longer than a block only the end counts: a job may write gigabytes
// without a newline.
void read_lines(const Core& core, std::istream& file, const auto& take) {
  constexpr std::size_t most = std::size_t{64} << 10U;
  std::string block(most, '\0');
  std::string rest;
  while (file.read(block.data(), static_cast<std::streamsize>(most)), file.gcount() > 0) {
    core.cancel().check();
    std::string_view piece(block.data(), static_cast<std::size_t>(file.gcount()));
    for (std::size_t end = 0; (end = piece.find('\n')) != std::string_view::npos;
         piece.remove_prefix(end + 1)) {
      rest += piece.substr(0, end);
      take(std::string_view(rest));
      rest.clear();
    }
    rest += piece;
    if (rest.size() > most) {
      rest.erase(0, rest.size() - most);
    }
  }
  if (!rest.empty()) {
    take(std::string_view(rest));
  }
}

class Outputs {
 public:
  Outputs(std::size_t points, int tail_lines)
      : points_(points), tail_lines_(static_cast<std::size_t>(tail_lines)) {}

  // Reads a job's output as it is here; what is not here is passed by.
  void read(const Core& core, const Job& job) {
    for (const bool is_err : {false, true}) {
      std::ifstream file(core.store.job_folder(job.id) / (is_err ? "job.err" : "job.out"), std::ios::binary);
      read_lines(core, file, [&](std::string_view line) { take(job, is_err, line); });
    }
  }

  void tell(const Job& job, Report& report) {
    for (auto& [place, output] : ranks_) {
      if (place.first != job.key) {
        continue;
      }
      const std::optional<int> rank = place.second < 0 ? std::nullopt : std::optional(place.second);
      report.tails.push_back(
          {rank, job.key, {output.out.begin(), output.out.end()}, {output.err.begin(), output.err.end()}});
      for (Curve& curve : output.numbers.curves()) {
        curve.rank = rank;
        curve.key = job.key;
        report.curves.push_back(std::move(curve));
      }
    }
  }

 private:
  void take(const Job& job, bool is_err, std::string_view line) {
    int rank = job.rank.value_or(-1);
    if (const std::size_t label = job.labelled ? label_length(line) : 0; label > 0) {
      const std::string_view digits = line.substr(1, line.find(']') - 1);
      rank = parse_number<int>(digits).value_or(rank);
      line.remove_prefix(label);
    }
    // A progress bar's last state is what counts.
    while (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (const std::size_t back = line.rfind('\r'); back != std::string_view::npos) {
      line.remove_prefix(back + 1);
    }
    const bool known =
        rank < 0 || ranks_of(job) == 1 || (rank >= *job.rank && rank < *job.rank + ranks_of(job));
    auto& output =
        ranks_.try_emplace({job.key, known ? rank : *job.rank}, RankOutput{{}, {}, CurveReader(points_)})
            .first->second;
    output.numbers.take(line);
    std::deque<std::string>& tail = is_err ? output.err : output.out;
    tail.emplace_back(line.substr(0, longest_line));
    if (tail.size() > tail_lines_) {
      tail.pop_front();
    }
  }

  std::size_t points_;
  std::size_t tail_lines_;
  std::map<std::pair<int, int>, RankOutput> ranks_;  // by key and rank; -1: none
};

// The servers' word about a launch that has ended; what is known here, where they do not answer.
void find_verdict(Core& core, Report& report) {
  const bool ended = std::ranges::all_of(report.jobs, [](const Job& job) { return is_final(job.state); });
  if (!ended || !report.jobs.front().launch) {
    return;
  }
  report.verdict = judge(core, report.jobs, {});
}

}  // namespace

Report report(Core& core, const ReportRequest& request) {
  Report report;
  report.made_at = now_seconds();
  report.jobs = request.fetch ? refresh(core, request.jobs) : request.jobs;
  std::ranges::stable_sort(report.jobs, {},
                           [](const Job& job) { return std::pair(job.rank.value_or(0), job.key); });
  if (request.fetch) {
    report.errors = fetch_logs(core, report.jobs);
    find_verdict(core, report);
  }
  int ranks = 0;
  for (const Job& job : report.jobs) {
    ranks += ranks_of(job);
  }
  const std::size_t points = most_points / static_cast<std::size_t>(12 * std::max(1, ranks));
  Outputs outputs(std::clamp<std::size_t>(points, 50, 2000), request.tail_lines);
  for (const Job& job : report.jobs) {
    outputs.read(core, job);
    outputs.tell(job, report);
  }
  std::ranges::stable_sort(report.curves, {},
                           [](const Curve& curve) { return std::pair(curve.name, curve.rank); });
  return report;
}

}  // namespace remote::project
