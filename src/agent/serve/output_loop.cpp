#include <algorithm>
#include <array>
#include <cstring>

#include <sys/inotify.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/serve/follower.hpp"

namespace remote::agent {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::size_t piece = 65536;
constexpr int pieces_in_turn = 4;  // then it is another job's turn
constexpr milliseconds check_interval{1000};

// Whether the kernel reports every change of the file, because no other machine can write to it.
bool reports_changes(const Path& file) {
  // ext, XFS, Btrfs, tmpfs, ramfs, ZFS, F2FS, bcachefs, JFS
  constexpr std::array<std::uint32_t, 9> local{0xEF53,     0x58465342, 0x9123683E, 0x01021994, 0x858458F6,
                                               0x2FC12FC1, 0xF2F52010, 0xCA451A4E, 0x3153464A};
  struct statfs info {};
  return ::statfs(file.c_str(), &info) == 0 &&
         std::ranges::find(local, static_cast<std::uint32_t>(info.f_type)) != local.end();
}

milliseconds poll_interval(std::size_t files) {
  return std::clamp(milliseconds(files), milliseconds(50), milliseconds(1000));
}

int time_until(Clock::time_point moment) {
  const auto left = std::chrono::ceil<milliseconds>(moment - Clock::now());
  return static_cast<int>(std::max(left, milliseconds(0)).count());
}

int sooner(int limit, int other) {
  return limit < 0 ? other : std::min(limit, other);
}

}  // namespace

OutputLoop::OutputLoop(const Host& host, const JobsFolder& folder, FollowedJobs& jobs,
                       std::function<void()> was_read)
    : host_(host),
      folder_(folder),
      jobs_(jobs),
      was_read_(std::move(was_read)),
      inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

OutputLoop::~OutputLoop() {
  stop();
  if (inotify_ >= 0) {
    ::close(inotify_);
  }
}

int OutputLoop::prepare_more(std::vector<pollfd>& fds) {
  if (inotify_ >= 0) {
    fds.push_back({inotify_, POLLIN, 0});
  }
  std::size_t polled = 0;
  int limit = -1;
  for (const auto& job : jobs_.list()) {
    if (job->step != FollowedJob::Step::reading) {
      continue;
    }
    if (!job->reader || (job->is_due && jobs_.credit(*job) > 1)) {
      return 0;
    }
    polled += job->is_polled ? 2 : 0;
    limit = sooner(limit, time_until(last_check_ + check_interval));
  }
  return polled > 0 ? sooner(limit, time_until(last_poll_ + poll_interval(polled))) : limit;
}

void OutputLoop::do_step() {
  take_changes();
  const auto jobs = jobs_.list();
  const auto polled =
      static_cast<std::size_t>(2 * std::ranges::count_if(jobs, [](const auto& job) {
                                 return job->step == FollowedJob::Step::reading && job->is_polled;
                               }));
  const auto now = Clock::now();
  const bool polls = now >= last_poll_ + poll_interval(polled);
  const bool checks = now >= last_check_ + check_interval;  // the kernel can lose a report
  last_poll_ = polls ? now : last_poll_;
  last_check_ = checks ? now : last_check_;
  for (const auto& job : jobs) {
    if (job->step == FollowedJob::Step::reading) {
      job->is_due = job->is_due || checks || (polls && job->is_polled);
      advance(job);
    }
  }
}

void OutputLoop::take_changes() {
  alignas(inotify_event) std::array<char, 16384> buffer{};
  ssize_t count = 0;
  while (inotify_ >= 0 && (count = ::read(inotify_, buffer.data(), buffer.size())) > 0) {
    for (std::size_t at = 0; at + sizeof(inotify_event) <= static_cast<std::size_t>(count);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      at += sizeof event + event.len;
      if ((event.mask & IN_Q_OVERFLOW) != 0) {
        last_check_ = {};
      }
      const auto [first, last] = watched_.equal_range(event.wd);
      for (auto found = first; found != last; ++found) {
        found->second->is_due = true;
        // The file was removed, and its watch with it.
        found->second->is_polled = found->second->is_polled || (event.mask & IN_IGNORED) != 0;
      }
    }
  }
}

void OutputLoop::begin(const std::shared_ptr<FollowedJob>& job) {
  try {
    job->reader.emplace(host_, folder_, job->request);
    jobs_.output().send_message(job->stream, wire::Reply(job->reader->begins()));
  } catch (const std::exception& error) {
    jobs_.refuse(*job, error.what());
    return;
  }
  job->is_finishing = !job->request.follow || job->reader->had_ended();
  if (job->reader->had_ended()) {
    job->has_ended = true;
  }
  watch(job);
}

void OutputLoop::watch(const std::shared_ptr<FollowedJob>& job) {
  job->is_due = true;  // it might have grown since it was read
  job->is_polled = false;
  if (job->is_finishing || job->request.wait_only) {
    return;
  }
  for (const Path& file : job->reader->files()) {
    const int watch = inotify_ >= 0 && reports_changes(file)
                          ? ::inotify_add_watch(inotify_, file.c_str(), IN_MODIFY | IN_DONT_FOLLOW)
                          : -1;
    if (watch >= 0) {
      job->watches.push_back(watch);
      watched_.emplace(watch, job);
    } else {
      job->is_polled = true;
    }
  }
}

void OutputLoop::unwatch(FollowedJob& job) {
  for (const int watch : job.watches) {
    std::erase_if(watched_,
                  [&](const auto& entry) { return entry.first == watch && entry.second.get() == &job; });
    if (!watched_.contains(watch)) {  // otherwise another stream still follows the same file
      ::inotify_rm_watch(inotify_, watch);
    }
  }
  job.watches.clear();
}

void OutputLoop::copy(FollowedJob& job) {
  wire::Bytes payload;
  for (int i = 0; i < pieces_in_turn && job.is_due; ++i) {
    const std::size_t most = std::min(piece, jobs_.credit(job));
    if (most < 2) {
      return;
    }
    if (job.reader->read(payload, most)) {
      jobs_.send_data(job, payload);
    } else {
      job.is_due = false;
    }
  }
}

void OutputLoop::advance(const std::shared_ptr<FollowedJob>& job) {
  if (job->is_aborted) {
    unwatch(*job);
    jobs_.finish(*job);
    return;
  }
  if (!job->reader) {
    begin(job);
    if (job->step == FollowedJob::Step::finished) {
      return;
    }
  }
  if (job->round != job->last_round) {
    job->last_round = job->round;
    job->is_finishing = false;
    job->reader->resume();
    watch(job);
  }
  if (job->has_ended && !job->is_finishing) {
    job->is_finishing = true;
    job->reader->finish();
    job->is_due = true;
  }
  copy(*job);
  if (job->reader->is_done()) {
    unwatch(*job);
    job->step = FollowedJob::Step::was_read;
    was_read_();
  }
}

}  // namespace remote::agent
