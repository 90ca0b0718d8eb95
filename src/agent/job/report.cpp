#include "agent/job/report.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <span>
#include <utility>

#include <unistd.h>

#include "agent/facts/machine_digest.hpp"
#include "agent/host/run.hpp"
#include "agent/job/attempts.hpp"
#include "agent/job/debugger_waits.hpp"
#include "agent/job/init_file.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/journal.hpp"
#include "agent/job/last_words.hpp"
#include "agent/job/output_end.hpp"
#include "agent/job/second_place.hpp"
#include "agent/tree/trees.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

using wire::JobPhase;
using wire::Moment;

// A supervisor file that is still empty after this time is abandoned: its writer died after creating it.
constexpr unsigned abandoned_after_us = 1'000'000;
constexpr std::chrono::seconds most_clock_difference{2};
constexpr std::size_t longest_reason = 1000;

Moment to_moment(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) +
         std::chrono::floor<std::chrono::milliseconds>(std::chrono::nanoseconds(time.tv_nsec));
}

bool is_possible(Moment moment) {
  return moment.count() >= wire::moment_limit.least && moment.count() <= wire::moment_limit.most;
}

std::optional<long long> parse_digits(std::string_view text, std::size_t most_digits) {
  const bool is_number = text.size() <= most_digits && !text.starts_with('-');
  return is_number ? parse_number<long long>(text) : std::nullopt;
}

std::optional<Moment> parse_report_moment(std::string_view text) {
  const auto ms = parse_digits(text, 15);
  return ms && *ms >= 1000 && is_possible(Moment(*ms)) ? std::optional(Moment(*ms)) : std::nullopt;
}

// Reads the time of the exception that made the job wait in a debugger (debugger.py).
std::optional<Moment> read_raised(const Path& folder) {
  return parse_report_moment(trim(read_job_line(folder / "raised").value_or("")));
}

// Returns nullopt if the file is missing or not a regular file.
std::optional<struct stat> look_at_file(const Path& path) {
  const auto info = look_at(path);
  return info && S_ISREG(info->st_mode) ? info : std::nullopt;
}

// Returns whether job.err ends with the line between two attempts, which is not output of the job.
bool ends_with_divider(const JobRecord& job) {
  if (!exists(job.folder / "attempt")) {
    return false;
  }
  const std::string text = read_end_of_file(job.folder / "job.err", 1000).value_or("");
  const auto last = find_last_lines(text, 1);
  return !last.empty() && last[0].starts_with("remote: the ranks begin anew (");
}

// Returns the time of a finished job's last output on stderr. Returns nullopt if the clock of the file system
// differs from the server's, as on a network file system. The modification time of the journal shows this.
std::optional<Moment> find_last_words(const JobRecord& job) {
  const auto err = look_at_file(job.folder / "job.err");
  const auto journal = look_at_file(job.folder / journal_name);
  if (!err || !journal || !job.end || !job.end->at || ends_with_divider(job)) {
    return std::nullopt;
  }
  const auto difference =
      std::chrono::seconds(journal->st_mtim.tv_sec) - std::chrono::floor<std::chrono::seconds>(*job.end->at);
  const Moment wrote_at = to_moment(err->st_mtim);
  return std::chrono::abs(difference) <= most_clock_difference && is_possible(wrote_at)
             ? std::optional(wrote_at)
             : std::nullopt;
}

// Moves the records of a finished job from the fallback folder to its own folder, if that is writable again.
void restore_records(const Host& host, const JobRecord& job) {
  if (restore_journal(host, job.folder, job.id)) {
    remove_second_journal(host, job.id);
  }
}

bool is_dead_end(JobPhase phase) {
  return phase == JobPhase::gone || phase == JobPhase::rebooted;
}

JobState find_state(Backends& backends, JobRecord& job, Look look) {
  try {
    return backends.find_state(job, look);
  } catch (const CannotStart& error) {
    return {.reason = error.what()};
  }
}

wire::JobReport make_report(const std::string& id, const JobState& state) {
  wire::JobReport report{.id = id};
  report.phase = state.phase;
  report.pid = state.pid;
  report.reason = wire::to_line(state.reason, longest_reason);
  report.supervised = state.supervised;
  report.left = state.left;
  report.leftovers = state.leftovers;
  report.unseen = state.unseen;
  return report;
}

}  // namespace

std::optional<wire::HangRecord> read_hung(const Path& folder) {
  const std::vector<std::string> words = read_job_words(folder / "hung");
  if (words.size() != 2 && words.size() != 3) {
    return std::nullopt;
  }
  const auto at = parse_report_moment(words[0]);
  const auto stood = parse_digits(words[1], 9);
  const auto moved_at = words.size() == 3 ? parse_report_moment(words[2]) : std::nullopt;
  if (!at || !stood || (words.size() == 3 && !moved_at)) {
    return std::nullopt;
  }
  return wire::HangRecord{.at = *at, .stood = std::chrono::seconds(*stood), .moved_at = moved_at};
}

std::size_t estimate_size(const wire::JobReport& report) {
  std::size_t size = 700 + report.reason.size() + (report.last_line ? report.last_line->size() : 0);
  for (const DebuggerWait& wait : report.waits) {
    size += 100 + wait.file.size() + wait.error.size();
  }
  for (const wire::AttemptRecord& attempt : report.attempts) {
    size += 200 + attempt.server.size();
    for (const std::string& name : attempt.without) {
      size += 4 + name.size();
    }
  }
  return size;
}

struct Reporter::Found {
  JobState state;
  std::optional<JobRecord> job{};  // nullopt if the report needs nothing from the folder
  bool is_abandoned = false;
};

wire::JobReport Reporter::report(const std::string& id, const ReportOptions& options) {
  Found found = find_job(id, options);
  wire::JobReport report = make_report(id, found.state);
  if (found.is_abandoned) {
    abandoned_[id] = options;
  } else if (found.job && report.phase != JobPhase::none) {
    describe(report, *found.job);
  }
  if (!found.job && (report.phase == JobPhase::none || report.phase == JobPhase::unknown)) {
    if (!machine_) {
      machine_ = read_machine_digest(host_);
    }
    report.machine = *machine_;
  }
  if (options.last_line) {
    report.last_line = read_last_line(backends_.folder().jobs / id);
  }
  return report;
}

Reporter::Found Reporter::find_job(const std::string& id, const ReportOptions& options) {
  std::optional<JobRecord> job = read_record(host_, backends_.folder(), id);
  if (!job) {
    Found missing = find_missing(id, options.claim);
    if (missing.state.phase != JobPhase::starting) {
      return missing;
    }
    job = std::move(missing.job);
  }
  if (job->never_started() || (!job->end && job->is_claimed)) {
    return {.state = {.phase = JobPhase::none}};
  }
  Found found;
  if (options.claim && !job->supervisor && !job->end) {
    found.state = find_state(backends_, *job, Look::all);
    if (found.state.phase == JobPhase::starting) {
      const bool has_process = found.state.pid.has_value();
      found.state.pid.reset();
      if (!has_process && claim(host_, backends_.folder(), id)) {
        return {.state = {.phase = JobPhase::none}};
      }
      found.is_abandoned = !has_process && exists(job->folder / "supervisor");
    }
  } else {
    const bool is_proven = options.proven_gone && job->backend == "local";
    found.state = find_state(backends_, *job, is_proven ? Look::brief : Look::usual);
  }
  if (found.state.phase == JobPhase::ended && !job->end) {
    found.state.phase = JobPhase::unknown;
    found.state.reason = "its result cannot be read";
  }
  found.job = std::move(job);
  return found;
}

// Finds the state of a job without a folder. If the folder has just been created, the phase is `starting`,
// and the result includes the record.
Reporter::Found Reporter::find_missing(const std::string& id, bool may_claim) {
  if (const auto pid = find_process(id)) {
    return {.state = {.phase = JobPhase::running,
                      .pid = pid,
                      .reason = "its folder is not there or cannot be seen"}};
  }
  if (may_claim && claim(host_, backends_.folder(), id)) {
    return {.state = {.phase = JobPhase::none}};
  }
  if (auto job = read_record(host_, backends_.folder(), id)) {
    return {.state = {.phase = JobPhase::starting}, .job = std::move(job)};
  }
  std::string obstacle = find_obstacle(backends_.folder(), id);
  if (obstacle.empty() && may_claim) {
    obstacle = "cannot write in " + backends_.folder().jobs.string();
  }
  return {.state = {.phase = obstacle.empty() ? JobPhase::none : JobPhase::unknown, .reason = obstacle}};
}

std::optional<int> Reporter::find_process(const std::string& id) {
  if (!living_) {
    living_.emplace();
    for (const auto& [pid, job] : find_job_processes(host_)) {
      const auto process = read_process(host_, pid);
      if (process && !process->is_dead()) {
        (*living_)[job] = pid;
      }
    }
  }
  const auto found = living_->find(id);
  return found != living_->end() ? std::optional(found->second) : std::nullopt;
}

void Reporter::describe(wire::JobReport& report, const JobRecord& job) {
  report.backend = job.backend.size() <= 32 && wire::is_word(job.backend, "") ? job.backend : "unknown";
  const auto out = look_at_file(job.folder / "job.out");
  const auto err = look_at_file(job.folder / "job.err");
  report.out_size = out ? static_cast<std::uint64_t>(out->st_size) : 0;
  report.err_size = err ? static_cast<std::uint64_t>(err->st_size) : 0;
  // Under Slurm, finding the state may add entries.
  const rules::JobHistory recorded =
      job.backend == "slurm" ? read_history(host_, job.folder, job.id) : job.recorded;
  if (recorded.started_at) {
    report.started_at = std::chrono::floor<std::chrono::seconds>(*recorded.started_at);
  }
  report.stop = recorded.stop;
  report.oom = recorded.was_out_of_memory;
  report.disk = recorded.disk;
  report.hung = read_hung(job.folder);
  report.attempts = read_attempts(job.folder);
  report.no_restart = recorded.no_restart;
  if (report.phase == JobPhase::running || report.phase == JobPhase::queued) {
    const Moment wrote_at =
        std::max(out ? to_moment(out->st_mtim) : Moment(), err ? to_moment(err->st_mtim) : Moment());
    if (wrote_at > Moment() && is_possible(wrote_at)) {
      report.wrote_at = wrote_at;
    }
  }
  describe_lifeline(report, job);
  if (report.phase == JobPhase::running) {
    report.waits = find_debugger_waits(host_, job);
  }
  if (is_dead_end(report.phase)) {
    leave_init_file(job.folder, job.id);  // normally done by the supervisor
  }
  if (report.phase == JobPhase::ended) {
    restore_records(host_, job);
    describe_end(report, job);
  }
  if ((is_dead_end(report.phase) || report.phase == JobPhase::ended) && is_file(job.folder / "tree") &&
      leave_tree(backends_.folder(), job.id)) {
    is_landing_due_ = true;
  }
}

void Reporter::describe_end(wire::JobReport& report, const JobRecord& job) {
  report.end = job.end;
  if (job.backend == "slurm") {
    used_[job.id] = job;
  }
  const bool succeeded = job.end && job.end->how.succeeded();
  if (succeeded && !report.stop) {
    return;
  }
  report.wrote_at = find_last_words(job);
  report.raised_at = read_raised(job.folder);
  report.after_peer = file_blames_peer(job.folder / "job.err");
}

void Reporter::describe_lifeline(wire::JobReport& report, const JobRecord& job) {
  if (report.phase == JobPhase::running || report.phase == JobPhase::queued) {
    report.lifeline = lifelines_.check(job);
  } else if (exists(job.folder / "notify")) {
    lifelines_.check(job);  // restarts it if needed, because it reports the end of the launch
  }
}

void Reporter::finish(std::vector<wire::JobReport>& reports) {
  if (!abandoned_.empty()) {
    decide_abandoned(reports);
  }
  if (!used_.empty() && find_process_limit(host_).empty()) {
    add_usage(reports);
  }
  used_.clear();
  if (is_landing_due_ && find_process_limit(host_).empty()) {
    land_trees(host_, backends_.folder());
  }
}

void Reporter::decide_abandoned(std::vector<wire::JobReport>& reports) {
  ::usleep(abandoned_after_us);
  living_.reset();
  backends_.forget();
  const std::map<std::string, ReportOptions> abandoned = std::exchange(abandoned_, {});
  for (wire::JobReport& report : reports) {
    const auto found = abandoned.find(report.id);
    if (found == abandoned.end()) {
      continue;
    }
    const auto job = read_record(host_, backends_.folder(), report.id);
    if (job && !job->supervisor && !job->is_claimed && !job->has_result() && !find_process(report.id)) {
      put_never_started(backends_.folder(), report.id);
    }
    ReportOptions options = found->second;
    options.claim = false;
    report = this->report(report.id, options);
  }
}

void Reporter::add_usage(std::vector<wire::JobReport>& reports) {
  // The backend gets jobs and reports in the same order.
  std::map<std::string, std::pair<std::vector<JobRecord>, std::vector<wire::JobReport*>>> by_backend;
  for (wire::JobReport& report : reports) {
    if (const auto job = used_.find(report.id); job != used_.end()) {
      auto& [jobs, its_reports] = by_backend[job->second.backend];
      jobs.push_back(job->second);
      its_reports.push_back(&report);
    }
  }
  for (auto& [name, jobs] : by_backend) {
    try {
      backends_.find(name)->report_usage(jobs.first, jobs.second);
    } catch (const CannotStart&) {
      return;  // the next report tries again
    }
  }
}

}  // namespace remote::agent
