// The report of a launch: asks the servers for the state of its jobs, copies their output and parses it.

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>

#include <remote/report.hpp>
#include <unistd.h>

#include "base/beneath.hpp"
#include "base/clock.hpp"
#include "base/strings.hpp"
#include "project/core.hpp"
#include "project/gpu_samples.hpp"
#include "project/history.hpp"
#include "project/rank_lines.hpp"
#include "project/report/kept_bandwidth.hpp"
#include "project/report/moments.hpp"
#include "project/report/numbers.hpp"
#include "project/server_setup.hpp"

namespace remote::project {
namespace {

// For all curves together, so that the page for many ranks remains usable.
constexpr std::size_t most_points = 300000;
constexpr std::size_t longest_tail_line = 2000;

struct RankOutput {
  std::deque<std::string> out;
  std::deque<std::string> err;
  CurveReader numbers;
};

constexpr std::size_t most_notes = 1000;

// Passes on each line. Of a line longer than one block, only the end is kept: a job may write gigabytes
// without a newline.
void read_lines(const Core& core, const UniqueFd& file, const auto& take) {
  constexpr std::size_t most = std::size_t{64} << 10U;
  std::string block(most, '\0');
  std::string rest;
  const auto read = [&] {
    return file ? uninterrupted([&] { return ::read(file.get(), block.data(), most); }) : 0;
  };
  for (ssize_t count = 0; (count = read()) > 0;) {
    core.cancel().check();
    std::string_view piece(block.data(), static_cast<std::size_t>(count));
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

  // Reads the local copy of a job's output; skips missing files.
  void read(const Core& core, const Job& job) {
    for (const bool is_err : {false, true}) {
      const UniqueFd file =
          open_beneath(core.store.folder(), core.store.job_folder(job.id) / (is_err ? "job.err" : "job.out"));
      read_lines(core, file, [&](std::string_view line) { take(job, is_err, line); });
    }
  }

  // Restarts found in the jobs' output, by the servers' clocks.
  const std::vector<Moment>& notes() const { return notes_; }

  void tell(const Job& job, Report& report) {
    const auto restarts =
        std::ranges::count_if(notes_, [&](const Moment& note) { return note.key == job.key; });
    for (auto& [place, output] : ranks_) {
      if (place.first != job.key) {
        continue;
      }
      const std::optional<int> rank = place.second < 0 ? std::nullopt : std::optional(place.second);
      report.tails.push_back(
          {rank, job.key, {output.out.begin(), output.out.end()}, {output.err.begin(), output.err.end()}});
      for (Curve& curve : output.numbers.curves(1 + static_cast<std::size_t>(restarts))) {
        curve.rank = rank;
        curve.key = job.key;
        report.curves.push_back(std::move(curve));
      }
    }
  }

 private:
  void take(const Job& job, bool is_err, std::string_view line) {
    int rank = job.rank.value_or(-1);
    if (const auto label = job.labelled ? take_label(line) : std::nullopt) {
      rank = *label;
    } else if (auto note = is_err && notes_.size() < most_notes ? moment_in(line) : std::nullopt) {
      note->key = job.key;
      note->rank = job.rank;
      note->server = job.server;
      notes_.push_back(std::move(*note));
    }
    // Only the last state of a progress bar matters.
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
    tail.emplace_back(line.substr(0, longest_tail_line));
    if (tail.size() > tail_lines_) {
      tail.pop_front();
    }
  }

  std::vector<Moment> notes_;
  std::size_t points_;
  std::size_t tail_lines_;
  std::map<std::pair<int, int>, RankOutput> ranks_;  // by key and rank; -1: none
};

// The verdict about a launch that has ended, from its servers; if they do not answer, from the records here.
void find_verdict(Core& core, Report& report) {
  const bool ended = std::ranges::all_of(report.jobs, [](const Job& job) { return is_final(job.state); });
  if (!ended || !report.jobs.front().launch) {
    return;
  }
  report.verdict = judge(core, report.jobs, {});
}

// All known events, by this machine's clock.
void find_moments(const Core& core, const std::vector<Moment>& notes, Report& report) {
  report.moments = moments_of(report.jobs);
  std::ranges::move(first_outputs(core.store, report.jobs), std::back_inserter(report.moments));
  for (Moment note : notes) {
    if (report.record) {
      const auto& servers = report.record->servers;
      const auto server = std::ranges::find(servers, note.server, &ServerSetup::server);
      if (server != servers.end()) {
        note.at -= std::chrono::duration_cast<std::chrono::milliseconds>(server->clock_ahead);
      }
    }
    report.moments.push_back(std::move(note));
  }
  std::ranges::stable_sort(report.moments, {}, &Moment::at);
}

// The stored GPU samples of the servers while the jobs were running. With `look`, takes a new sample first.
void find_gpus(Core& core, bool look, Report& report) {
  std::vector<std::string> servers;
  std::vector<std::string> busy;
  Instant from = report.made_at;
  Instant to;
  for (const Job& job : report.jobs) {
    if (std::ranges::find(servers, job.server) == servers.end()) {
      servers.push_back(job.server);
    }
    if (job.state == JobState::running && std::ranges::find(busy, job.server) == busy.end()) {
      busy.push_back(job.server);
    }
    from = std::min(from, job.created_at);
    to = std::max(to, is_final(job.state) ? end_of(job) : report.made_at);
  }
  if (look && !busy.empty()) {
    watch(core, {.servers = busy, .once = true});  // this stores the sample
    to = now_seconds();
  }
  report.gpus = kept_samples(core.config, servers, from, to);
}

// If one part fails, adds the error and continues with the others.
void find_part(Report& report, const auto& find) {
  try {
    find();
  } catch (const Error& error) {
    report.errors.push_back(error);
  }
}

Report report(Core& core, const ReportRequest& request) {
  Report report;
  report.made_at = now_seconds();
  report.jobs = request.fetch ? refresh(core, request.jobs) : request.jobs;
  std::ranges::stable_sort(report.jobs, {},
                           [](const Job& job) { return std::pair(job.rank.value_or(0), job.key); });
  if (request.fetch) {
    report.errors = fetch_logs(core, report.jobs);
    find_verdict(core, report);
    complete_records(core, report.verdict);
  }
  find_part(report, [&] {
    if (auto record = record_of(core, report.jobs)) {
      report.record = std::move(record->beginning);
    }
  });
  if (report.record) {
    find_part(report, [&] { read_variables(core.store, report.jobs.front(), report.record->servers); });
  }
  find_part(report, [&] { report.bandwidth = kept_bandwidth(core.config, report.jobs); });
  find_part(report, [&] { find_gpus(core, request.fetch && request.sample, report); });
  int ranks = 0;
  for (const Job& job : report.jobs) {
    ranks += ranks_of(job);
  }
  const std::size_t points = most_points / static_cast<std::size_t>(12 * std::max(1, ranks));
  Outputs outputs(std::clamp<std::size_t>(points, 50, 2000), request.tail_lines);
  for (const Job& job : report.jobs) {
    find_part(report, [&] { outputs.read(core, job); });
    outputs.tell(job, report);
  }
  find_moments(core, outputs.notes(), report);
  std::ranges::stable_sort(report.curves, {}, [](const Curve& curve) {
    return std::tuple(!is_loss(curve.name), curve.name, curve.rank);
  });
  return report;
}

}  // namespace

}  // namespace remote::project

namespace remote {

Report Project::report(const ReportRequest& request, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::report(core, request); });
}

}  // namespace remote
