// Follows jobs until they end; for a launch, also stops the remaining ranks after a failure and finds the
// verdict.

#include "jobs/follow.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <variant>

#include <fmt/format.h>
#include <poll.h>

#include "base/failure_lines.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "base/threads.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/launch_store.hpp"
#include "jobs/refresh.hpp"
#include "jobs/verdict.hpp"
#include "project/core.hpp"
#include "project/follow_output.hpp"
#include "project/history.hpp"
#include "project/report/moments.hpp"
#include "project/server_setup.hpp"
#include "project/sweep.hpp"
#include "servers/fanout.hpp"

namespace remote::project {
namespace {

using Clock = std::chrono::steady_clock;

// Sleeps until `time`; returns false if `over` or `cancel` ends the sleep early.
bool sleep_until(Clock::time_point time, const Cancel& over, const Cancel& cancel) {
  while (!over.cancelled() && !cancel.cancelled()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now()).count();
    if (left <= 0) {
      return true;
    }
    std::array<pollfd, 2> fds{{{over.fd(), POLLIN, 0}, {cancel.fd(), POLLIN, 0}}};
    static_cast<void>(::poll(fds.data(), fds.size(), static_cast<int>(left)));
  }
  return false;
}

// Stops the other ranks, once, on a separate thread, because the followers must continue to read meanwhile.
class OtherRanksStopper {
 public:
  OtherRanksStopper(Core& core, const std::vector<Job>& ranks, std::chrono::seconds grace)
      : core_(core), ranks_(ranks), grace_(grace) {}

  ~OtherRanksStopper() { over_.cancel(); }

  void end_after(const Job& failed) {
    const std::lock_guard lock(mutex_);
    if (thread_.joinable() || goes_on_without(failed)) {
      return;
    }
    core_.tell(EndingRanks{failed});
    std::vector<Job> others;
    std::ranges::copy_if(ranks_, std::back_inserter(others),
                         [&](const Job& job) { return job.id != failed.id; });
    KillRequest request;
    request.by = {.kind = JobReason::Kind::after_rank, .number = failed.rank.value_or(0)};
    thread_ = JoiningThread([this, request, others = std::move(others)] {
      if (sleep_until(Clock::now() + grace_, over_, core_.cancel())) {
        end(others, request);
      }
    });
  }

 private:
  // Whether the launch may restart, or is an elastic launch with enough jobs left. It cannot continue without
  // the first job, which has the store that all others need.
  bool goes_on_without(const Job& failed) {
    if (failed.may_restart) {
      return true;
    }
    if (!failed.needed || !has_left(failed) || failed.rank.value_or(0) == 0) {
      return false;
    }
    ++left_;
    return static_cast<int>(ranks_.size()) - left_ >= *failed.needed;
  }

  void end(const std::vector<Job>& others, const KillRequest& request) {
    try {
      const std::vector<Error> errors = kill(core_, others, request, core_.cancel()).errors;
      if (!errors.empty()) {
        core_.tell(PartsFailed{errors});
      }
    } catch (const Interrupted&) {
      // the follower reports this itself
    } catch (const Error& error) {
      core_.tell(PartsFailed{{error}});
    }
  }

  Core& core_;
  const std::vector<Job>& ranks_;
  std::chrono::seconds grace_;
  std::mutex mutex_;
  int left_ = 0;
  Cancel over_;
  JoiningThread thread_;
};

// The time of the last output, and the broken connections. Thread-safe.
class Heard {
 public:
  void output() { last_ = Clock::now(); }
  Clock::time_point last() const { return last_; }
  void link(const Event& event) {
    const std::lock_guard lock(mutex_);
    if (const auto* lost = std::get_if<LinkLost>(&event)) {
      lost_.insert(lost->server);
    } else if (const auto* back = std::get_if<LinkBack>(&event)) {
      lost_.erase(back->server);
    }
  }
  bool is_lost(const std::string& server) const {
    const std::lock_guard lock(mutex_);
    return lost_.contains(server);
  }

 private:
  std::atomic<Clock::time_point> last_ = Clock::now();
  mutable std::mutex mutex_;
  std::set<std::string> lost_;
};

// Asks the servers why jobs are silent, and reports ranks in a debugger, queued jobs, and servers that do not
// answer, each only once.
class SilenceTeller {
 public:
  SilenceTeller(Core& core, const std::vector<Job>& jobs, const Heard& heard)
      : core_(core), jobs_(jobs), heard_(heard) {}

  // Returns the jobs in their current state. Throws like jobs::refresh().
  std::vector<Job> look() {
    // Longer than a login over a slow connection, so that such a server does not count as silent.
    constexpr std::chrono::seconds patience{15};
    jobs::News news = jobs::refresh(core_.site(), jobs_, patience);
    std::vector<Job> queued;
    for (const Job& job : news.jobs) {
      for (const DebuggerWait& wait : job.waits) {
        if (told_.insert(job.id.text() + wait.id).second) {
          core_.tell(RankWaits{job, wait});
        }
      }
      // A spare of a running launch is queued too, but is not worth reporting.
      const auto runs = [&](const Job& other) {
        return job.launch && other.launch == job.launch && other.state == JobState::running;
      };
      if (job.state == JobState::queued && std::ranges::none_of(news.jobs, runs) &&
          told_.insert(job.id.text() + job.reason.text).second) {
        queued.push_back(job);
      }
    }
    if (!queued.empty()) {
      core_.tell(JobsQueued{std::move(queued)});
    }
    std::vector<Error> silent;
    std::set<std::string> names;
    for (const Error& error : news.silent) {
      names.insert(error.server());
      if (!heard_.is_lost(error.server()) && !silent_.contains(error.server())) {
        silent.push_back(error);
      }
    }
    silent_ = std::move(names);
    if (!silent.empty()) {
      core_.tell(SilentServers{std::move(silent)});
    }
    return std::move(news.jobs);
  }

 private:
  Core& core_;
  const std::vector<Job>& jobs_;
  const Heard& heard_;
  std::set<std::string> told_;
  std::set<std::string> silent_;  // servers that did not answer last time
};

// Checks repeatedly during silence, until `over`. `launch`: the jobs are one launch. In that case reports
// once, after the lifelines have had time to connect, which servers have none: for these this program must
// keep following.
void tell_waits(Core& core, const std::vector<Job>& jobs, bool launch, const Heard& heard,
                const Cancel& over) {
  constexpr std::chrono::seconds silence{3};
  constexpr std::chrono::seconds longest_pause{30};
  // A lifeline reports after two seconds that it cannot reach the first server, and after three that servers
  // are missing. After `late`, all lifelines have started.
  constexpr std::chrono::seconds early{3};
  constexpr std::chrono::seconds late{12};
  const auto begin = Clock::now();
  std::vector<Clock::time_point> fixed = {begin + early, begin + late};
  SilenceTeller teller(core, jobs, heard);
  auto previous = begin;
  std::chrono::seconds pause{0};
  bool missing = false;
  for (;;) {
    const auto quiet = std::max(heard.last() + silence, previous + pause);
    // In a launch, another rank may be waiting while the displayed one keeps printing.
    const auto latest = fixed.empty() ? previous + longest_pause : fixed.front();
    const auto due = launch ? std::min(quiet, latest) : quiet;
    if (!sleep_until(due, over, core.cancel())) {
      return;
    }
    const bool is_fixed = launch && !fixed.empty() && due == fixed.front();
    if (due == quiet && heard.last() + silence > Clock::now() && !is_fixed) {
      continue;
    }
    try {
      const std::vector<Job> now = teller.look();
      if (is_fixed) {
        fixed.erase(fixed.begin());
        const bool counts = fixed.empty() || lacks_lifeline(now.front());
        missing = missing || (counts && tell_missing_lifelines(core, now));
      }
    } catch (const std::exception&) {
      return;  // the follower reports the error
    }
    previous = Clock::now();
    pause = std::clamp(pause * 2, std::chrono::seconds(5), longest_pause);
  }
}

bool are_one_launch(const std::vector<Job>& jobs) {
  return !jobs.empty() && std::ranges::all_of(jobs, [&](const Job& job) {
    return job.launch && job.launch == jobs.front().launch && !job.point;  // sweep points are independent
  });
}

// The verdict about the launch of these jobs, which have ended or were given up; nullopt if another job of
// the launch has not ended.
std::optional<Verdict> judge_launch(Core& core, const std::vector<Job>& jobs,
                                    const std::vector<std::string>& gone) {
  std::vector<Job> launch = jobs;
  for (Job& job : stored_jobs(core)) {
    if (job.launch == jobs.front().launch && std::ranges::find(jobs, job.id, &Job::id) == jobs.end()) {
      launch.push_back(std::move(job));
    }
  }
  if (launch.size() > jobs.size()) {
    launch = refresh(core, std::move(launch));
    std::ranges::sort(launch, {}, &Job::key);
    if (!std::ranges::all_of(launch, [](const Job& job) { return is_final(job.state); })) {
      return std::nullopt;
    }
  }
  return judge(core, launch, gone);
}

// Judges a launch whose jobs have all ended or were given up. A server that the launch continued without is
// not an error.
void judge_end(Core& core, FollowResult& result) {
  result.verdict = judge_launch(core, result.jobs, result.gone);
  const std::vector<std::string> left = result.verdict ? result.verdict->left : std::vector<std::string>();
  const auto is_left = [&](const std::string& server) {
    return std::ranges::find(left, server) != left.end();
  };
  std::erase_if(result.errors, [&](const Error& error) { return is_left(error.server()); });
  std::erase_if(result.gone, is_left);
}

jobs::FollowOptions options_of(const std::vector<Job>& jobs, const std::vector<Part>& parts,
                               const FollowRequest& request) {
  jobs::FollowOptions options;
  options.lines = request.lines;
  int most = 1;
  for (const Part& part : parts) {
    const Job& job = jobs[part.job];
    options.ranks.push_back(part.file);
    options.silent.push_back(request.silent || (request.first_rank_only && job.rank.value_or(0) != 0) ||
                             (part.rank && !wants(request, *part.rank)));
    if (part.labelled && !request.ranks.empty()) {  // lines of a rank are mixed with others
      most = std::max(most, ranks_of(job));
    }
  }
  if (request.lines) {
    options.lines = static_cast<int>(std::min<std::int64_t>(std::int64_t{*request.lines} * most, 1000000000));
  }
  options.since = request.since;
  options.follow = request.follow;
  options.patience = request.patience;
  options.lost_after = request.lost_after;
  return options;
}

void check_rank(const Core& core, const std::vector<Job>& jobs, int rank) {
  for (const Job& job : jobs) {
    const int first = job.rank.value_or(0);
    if (ranks_of(job) > 1 && !job.labelled && rank > first && rank < first + ranks_of(job) &&
        !jobs::is_of_slurm(core.config, job)) {
      throw Error::usage(
          fmt::format("cannot show the output of rank {}", rank),
          fmt::format("the output of job {} is not divided by ranks", job.key),
          fmt::format("its own output may be in ranks/{}.out and ranks/{}.err of the job's folder on {}",
                      rank, rank, job.server));
    }
  }
}

// The same jobs; points of a sweep that were waiting are replaced by their current state, including the
// server.
std::vector<Job> found_points(Core& core, std::vector<Job> jobs) {
  if (std::ranges::any_of(jobs, waits_for_turn)) {
    for (const Job& now : refresh(core, jobs)) {
      *std::ranges::find(jobs, now.id, &Job::id) = now;
    }
  }
  return jobs;
}

}  // namespace

FollowResult follow(Core& core, const std::vector<Job>& asked_for, const FollowRequest& asked,
                    const std::vector<Job>& ended) {
  const std::vector<Job> jobs = found_points(core, asked_for);
  for (const Job& job : jobs) {
    if (waits_for_turn(job)) {
      throw Error::usage(fmt::format("cannot show the output of job {}", job.key),
                         "it is a point of a sweep and waits for its turn")
          .mended_by(Remedy::list_jobs);
    }
  }
  FollowRequest request = asked;
  if (request.first_rank_only) {
    request.ranks = {0};
  }
  for (const int rank : request.ranks) {
    check_rank(core, jobs, rank);
  }
  std::optional<OtherRanksStopper> ender;
  Heard heard;
  Cancel over;
  JoiningThread teller;
  const CancelAtEnd at_end{over};
  if (request.end_others && jobs.size() > 1) {
    ender.emplace(core, jobs, *request.end_others);
  }
  if (request.follow && !jobs.empty()) {
    teller = JoiningThread([&] { tell_waits(core, jobs, ender.has_value(), heard, over); });
  }
  const std::vector<Part> parts = parts_of(core, jobs, request);
  std::vector<Job> followed_jobs;
  std::ranges::transform(parts, std::back_inserter(followed_jobs),
                         [&](const Part& part) { return jobs[part.job]; });
  jobs::FollowEvents events;
  jobs::FollowOptions options = options_of(jobs, parts, request);
  Output output(parts, jobs, request);
  // Only `launch --follow` sees output when it is written.
  const std::vector<Job> from_their_start = request.first_rank_only ? jobs : std::vector<Job>();
  FirstOutputs first(core.store, from_their_start);
  const SettledAtTheEnd settled(core);
  const auto give =
      core.on_caller(OnOutput([&](std::size_t index, OutputStream stream, std::string_view data) {
        first.note(parts[index].job);
        output.take(index, stream, data);
      }));
  events.output = [&](std::size_t index, OutputStream stream, std::string_view data) {
    heard.output();
    give(index, stream, data);
  };
  const auto finish = core.on_caller(std::function<void(std::size_t, const Job&)>(
      [&](std::size_t index, const Job& job) { output.finish(index, job); }));
  events.ended = [&](std::size_t index, const Job& job) {
    finish(index, job);
    if (ender && has_failed(job)) {
      ender->end_after(job);
    }
  };
  events.link = [&](const Event& event) {
    heard.link(event);
    core.tell(event);
  };
  events.settled = core.on_caller(request.on_settled);
  Cancel all_read;
  JoiningThread ticker;
  const CancelAtEnd ticker_end{all_read};
  if (request.fold && request.follow) {
    const auto tick = core.on_caller(std::function<void()>([&] { output.give_due(); }));
    ticker = JoiningThread([&, tick] {
      while (sleep_until(Clock::now() + LineFold::longest_wait / 3, all_read, core.cancel())) {
        tick();
      }
    });
  }
  options.ended = ended;
  jobs::FollowResult followed = jobs::follow(core.site(), std::move(followed_jobs), options, events);
  core.on_caller(std::function<void()>([&] { output.give_all(); }))();
  FollowResult result;
  result.jobs = jobs;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    result.jobs[parts[i].job] = std::move(followed.jobs[i]);
  }
  result.errors = std::move(followed.errors);
  result.gone = std::move(followed.gone);
  const bool known =
      request.follow || std::ranges::all_of(result.jobs, [](const Job& job) { return is_final(job.state); });
  if (request.judge && known && are_one_launch(result.jobs)) {
    judge_end(core, result);
  }
  measure_points(core, result.jobs);
  complete_records(core, result.verdict);
  return result;
}

namespace {

// Points of a sweep: it is unknown here which server gets one next, so this queries them repeatedly.
FollowResult wait_for_points(Core& core, const std::vector<Job>& jobs,
                             const std::function<void(std::size_t, const Job&)>& on_ended) {
  FollowResult result;
  result.jobs = jobs;
  const auto tell = core.on_caller(on_ended);
  const SettledAtTheEnd settled(core);
  const Cancel never;
  for (;;) {
    const std::vector<Job> now = refresh(core, result.jobs);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const auto news = std::ranges::find(now, result.jobs[i].id, &Job::id);
      const bool ended = news != now.end() && is_final(news->state) && !is_final(result.jobs[i].state);
      result.jobs[i] = news != now.end() ? *news : result.jobs[i];
      if (ended && tell) {
        tell(i, result.jobs[i]);
      }
    }
    // While another machine has a server's address, nothing will be known about that server's points.
    if (std::ranges::all_of(result.jobs, [](const Job& job) {
          return is_final(job.state) || job.reason.kind == JobReason::Kind::other_machine;
        })) {
      complete_records(core);
      return result;
    }
    sleep_until(Clock::now() + std::chrono::seconds(2), never, core.cancel());
    core.cancel().check();
  }
}

FollowResult wait(Core& core, const std::vector<Job>& jobs,
                  std::function<void(std::size_t, const Job&)> on_ended) {
  if (std::ranges::any_of(jobs, waits_for_turn)) {
    return wait_for_points(core, jobs, on_ended);
  }
  std::vector<Job> running;
  std::vector<std::size_t> where;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!is_final(jobs[i].state)) {
      running.push_back(jobs[i]);
      where.push_back(i);
    }
  }
  // Following without output is waiting: the end is reported immediately, and a broken connection is
  // re-established.
  FollowRequest request;
  request.silent = true;
  request.patience = std::chrono::seconds(60);
  if (on_ended) {
    request.on_ended = [&](std::size_t index, const Job& job) { on_ended(where[index], job); };
  }
  std::vector<Job> ended;
  std::ranges::copy_if(jobs, std::back_inserter(ended), [](const Job& job) { return is_final(job.state); });
  FollowResult result = follow(core, running, request, ended);
  std::vector<Job> all = jobs;
  for (std::size_t i = 0; i < where.size(); ++i) {
    all[where[i]] = std::move(result.jobs[i]);
  }
  result.jobs = std::move(all);
  if (are_one_launch(result.jobs) && result.errors.size() == result.gone.size()) {
    judge_end(core, result);
  }
  return result;
}

// The failed ranks within those of these jobs that run several ranks: agents of torchrun, mpirun and its
// daemons, and launches under Slurm. Ranks that the servers do not report are missing.
std::vector<jobs::Worker> workers_of(Core& core, const std::vector<Job>& jobs) {
  std::vector<Job> agents;
  std::ranges::copy_if(jobs, std::back_inserter(agents),
                       [](const Job& job) { return job.ranks && job.state == JobState::failed; });
  const auto outcomes = servers::fan_out(agents, &Job::server, [&](const Job& agent, std::size_t) {
    const auto connection = core.connector().connect(jobs::server_of(core.config, agent), core.cancel(),
                                                     std::chrono::ceil<std::chrono::seconds>(ask_limit));
    return jobs::failed_workers({*connection, core.cancel()}, agent);
  });
  std::vector<jobs::Worker> workers;
  for (const auto& outcome : outcomes) {
    if (outcome.ok()) {
      workers.insert(workers.end(), outcome.value->begin(), outcome.value->end());
    }
  }
  return workers;
}

// The last lines of a file in the job's folder; nullopt if its server does not answer, because a verdict
// should not wait for it.
std::optional<std::vector<std::string>> lines_of(Core& core, const Job& job, int count,
                                                 const std::string& file) {
  try {
    const auto connection = core.connector().connect(jobs::server_of(core.config, job), core.cancel(),
                                                     std::chrono::ceil<std::chrono::seconds>(ask_limit));
    return jobs::last_lines({*connection, core.cancel()}, {job}, count, {file});
  } catch (const Error& error) {
    const bool is_gone = error.cause() == Cause::unreachable || error.cause() == Cause::timeout ||
                         error.cause() == Cause::refused;  // for example a gateway without its container
    return is_gone ? std::nullopt : std::optional(std::vector<std::string>());
  }
}

// A fact about the job's server from the record of the launch; "": unknown.
std::string read_fact(const Core& core, const Job& job, std::string_view name) {
  try {
    const auto record = job.launch ? jobs::LaunchStore(core.store).read(*job.launch) : std::nullopt;
    for (const ServerSetup& setup : record ? record->beginning.servers : std::vector<ServerSetup>()) {
      if (setup.server == job.server) {
        return visible_line(find_fact(setup, name), 100);
      }
    }
  } catch (const Error& error) {
    log_info(job.server, "{}", error.message());
  }
  return "";
}

}  // namespace

Verdict judge(Core& core, const std::vector<Job>& jobs, const std::vector<std::string>& gone) {
  const std::vector<jobs::Worker> workers = workers_of(core, jobs);
  std::vector<Job> processes;
  std::ranges::transform(workers, std::back_inserter(processes), &jobs::Worker::job);
  Verdict verdict = verdict_of(jobs, processes, gone);
  if (!verdict.first) {
    return verdict;
  }
  verdict.shm = read_fact(core, *verdict.first, "shm");
  const auto worker = std::ranges::find(workers, *verdict.first, &jobs::Worker::job);
  constexpr int most_read = 400;  // a process that aborts prints C++ stacks after its error
  constexpr std::size_t most_kept = 10;
  if (worker != workers.end()) {
    verdict.last_lines = worker->last_lines;
  } else if (const auto lines = lines_of(core, *verdict.first, most_read, "job.err")) {
    verdict.last_lines = find_failure_lines(*lines, most_kept);
  } else {
    verdict.gone = true;
    verdict.reported_at = jobs::find_last_report(jobs, verdict.first->server);
  }
  return verdict;
}

}  // namespace remote::project

namespace remote {

FollowResult Project::follow(const std::vector<Job>& jobs, const FollowRequest& request,
                             const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::follow(core, jobs, request); });
}

FollowResult Project::wait(const std::vector<Job>& jobs,
                           std::function<void(std::size_t, const Job&)> on_ended,
                           const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::wait(core, jobs, on_ended); });
}

}  // namespace remote
