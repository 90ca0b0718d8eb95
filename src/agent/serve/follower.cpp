#include "agent/serve/follower.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "agent/host/processes.hpp"
#include "agent/job/report.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

// Whether the job's end still has to be detected.
bool is_awaited(const FollowedJob& job) {
  return job.step == FollowedJob::Step::reading && job.request.follow && !job.has_ended && !job.is_aborted;
}

// Whether the job may continue, for example because Slurm restarts it.
bool may_go_on(const wire::JobReport& report) {
  using Phase = wire::JobPhase;
  return report.phase == Phase::starting || report.phase == Phase::queued || report.phase == Phase::running ||
         report.phase == Phase::unknown;
}

}  // namespace

void FollowedJobs::add(std::uint32_t stream, const wire::FollowRequest& request) {
  const auto job = std::make_shared<FollowedJob>(stream, request);
  const std::lock_guard lock(mutex_);
  jobs_.emplace(stream, job);
}

std::vector<std::shared_ptr<FollowedJob>> FollowedJobs::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<FollowedJob>> jobs;
  jobs.reserve(jobs_.size());
  for (const auto& [stream, job] : jobs_) {
    jobs.push_back(job);
  }
  return jobs;
}

bool FollowedJobs::has(std::uint32_t stream) const {
  const std::lock_guard lock(mutex_);
  return jobs_.contains(stream);
}

void FollowedJobs::grant(std::uint32_t stream, std::uint32_t bytes) {
  const std::lock_guard lock(mutex_);
  if (const auto found = jobs_.find(stream); found != jobs_.end()) {
    found->second->credit.grant(bytes);
  }
}

void FollowedJobs::abort(std::uint32_t stream) {
  const std::lock_guard lock(mutex_);
  if (const auto found = jobs_.find(stream); found != jobs_.end()) {
    found->second->is_aborted = true;
  }
}

std::size_t FollowedJobs::credit(const FollowedJob& job) const {
  const std::lock_guard lock(mutex_);
  return job.credit.available();
}

void FollowedJobs::send_data(FollowedJob& job, const wire::Bytes& payload) {
  {
    const std::lock_guard lock(mutex_);
    job.credit.consume(payload.size());
  }
  output_.send(wire::FrameKind::data, job.stream, payload);
}

void FollowedJobs::finish(FollowedJob& job) {
  job.step = FollowedJob::Step::finished;
  {
    const std::lock_guard lock(mutex_);
    jobs_.erase(job.stream);
  }
  output_.send(wire::FrameKind::end, job.stream);
  ended_();
}

void FollowedJobs::refuse(FollowedJob& job, const char* reason) {
  output_.send_message(job.stream, wire::Reply(wire::Refusal{wire::to_line(reason, 1000)}));
  finish(job);
}

EndLoop::EndLoop(const Host& host, const JobsFolder& folder, FollowedJobs& jobs,
                 std::function<void()> has_ended)
    : host_(host), folder_(folder), jobs_(jobs), has_ended_(std::move(has_ended)), backends_(host, folder) {}

EndLoop::~EndLoop() {
  stop();
}

int EndLoop::prepare_more(std::vector<pollfd>& fds) {
  const auto now = std::chrono::steady_clock::now();
  auto next = now + std::chrono::hours(1);
  for (const auto& job : jobs_.list()) {
    if (!is_awaited(*job)) {
      continue;
    }
    next = std::min(next, job->next_look);
    if (job->watch && job->watch->fd() >= 0) {
      fds.push_back({job->watch->fd(), POLLIN, 0});
    }
  }
  return static_cast<int>(
      std::max(std::chrono::ceil<std::chrono::milliseconds>(next - now), std::chrono::milliseconds(0))
          .count());
}

// Returns the jobs to check: their supervisors have exited, or their next check is due.
std::vector<FollowedJob*> EndLoop::find_due(const std::vector<std::shared_ptr<FollowedJob>>& jobs) {
  const auto now = std::chrono::steady_clock::now();
  std::vector<FollowedJob*> due;
  std::vector<FollowedJob*> watched;
  std::vector<pollfd> fds;
  for (const auto& job : jobs) {
    if (!is_awaited(*job)) {
      continue;
    }
    if (now >= job->next_look) {
      due.push_back(job.get());
    } else if (job->watch && job->watch->fd() >= 0) {
      watched.push_back(job.get());
      fds.push_back({job->watch->fd(), POLLIN, 0});
    }
  }
  ::poll(fds.data(), fds.size(), 0);
  for (std::size_t i = 0; i < fds.size(); ++i) {
    if (fds[i].revents != 0) {
      due.push_back(watched[i]);
    }
  }
  return due;
}

void EndLoop::look(FollowedJob& job) {
  if (!job.watch) {
    job.watch.emplace(backends_, job.request.id);
  }
  bool has_ended = false;
  try {
    has_ended = job.watch->has_ended();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): for example out of memory; tries again
  }
  if (has_ended) {
    job.has_ended = true;
    has_ended_();
  }
  job.next_look = std::chrono::steady_clock::now() + job.watch->interval();
}

void EndLoop::do_step() {
  const auto jobs = jobs_.list();
  if (const std::vector<FollowedJob*> due = find_due(jobs); !due.empty()) {
    backends_.forget();
    for (FollowedJob* job : due) {
      look(*job);
    }
  }
  std::vector<std::shared_ptr<FollowedJob>> read;
  for (const auto& job : jobs) {
    if (job->step == FollowedJob::Step::was_read && job->is_aborted) {
      jobs_.finish(*job);
    } else if (job->step == FollowedJob::Step::was_read) {
      read.push_back(job);
    }
  }
  if (!read.empty()) {
    report(read);
  }
}

void EndLoop::report(std::vector<std::shared_ptr<FollowedJob>> jobs) {
  const wire::Moment now = read_wall_clock();
  Backends backends(host_, folder_);
  Reporter reporter(backends);
  std::vector<wire::JobReport> reports;
  std::erase_if(jobs, [&](const auto& job) {
    try {
      reports.push_back(reporter.report(job->request.id, {}));
      return false;
    } catch (const std::exception& error) {
      jobs_.refuse(*job, error.what());
      return true;
    }
  });
  try {
    reporter.finish(reports);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): send incomplete reports
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    report(*jobs[i], now, std::move(reports[i]));
  }
}

void EndLoop::report(FollowedJob& job, wire::Moment now, wire::JobReport report) {
  constexpr std::chrono::milliseconds longest_pause{2000};
  if (job.request.follow && may_go_on(report)) {
    job.watch.reset();
    job.next_look = std::chrono::steady_clock::now() + job.pause;
    job.pause = std::min(2 * job.pause, longest_pause);
    job.has_ended = false;
    ++job.round;
    job.step = FollowedJob::Step::reading;
    has_ended_();
    return;
  }
  try {
    jobs_.output().send_message(job.stream, wire::Reply(wire::FollowEnds{now, std::move(report)}));
    jobs_.finish(job);
  } catch (const std::exception& error) {
    jobs_.refuse(job, error.what());
  }
}

Follower::Follower(const Host& host, const wire::JobsPlace& place, Output& output,
                   std::function<void()> ended)
    : folder_(JobsFolder::of(host, place)),
      jobs_(output, std::move(ended)),
      output_loop_(host, folder_, jobs_, [this] { end_loop_.wake(); }),
      end_loop_(host, folder_, jobs_, [this] { output_loop_.wake(); }) {
  static_cast<void>(output_loop_.start_thread());
  static_cast<void>(end_loop_.start_thread());
}

Follower::~Follower() {
  output_loop_.stop();
  end_loop_.stop();
}

void Follower::add(std::uint32_t stream, const wire::FollowRequest& request) {
  jobs_.add(stream, request);
  output_loop_.wake();
  end_loop_.wake();
}

void Follower::grant(std::uint32_t stream, std::uint32_t bytes) {
  jobs_.grant(stream, bytes);
  output_loop_.wake();
}

void Follower::abort(std::uint32_t stream) {
  jobs_.abort(stream);
  output_loop_.wake();
  end_loop_.wake();
}

std::vector<Loop*> Follower::loops() {
  std::vector<Loop*> result;
  for (Loop* loop : {static_cast<Loop*>(&output_loop_), static_cast<Loop*>(&end_loop_)}) {
    if (!loop->has_thread()) {
      result.push_back(loop);
    }
  }
  return result;
}

}  // namespace remote::agent
