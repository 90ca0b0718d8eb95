#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "agent/job/answers.hpp"
#include "agent/job/backend.hpp"
#include "agent/job/journal.hpp"
#include "agent/job/report.hpp"

namespace remote::agent {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t most_jobs_in_part = 500;
constexpr std::size_t most_bytes_in_part = std::size_t{256} << 10U;
constexpr std::chrono::milliseconds part_interval{100};
constexpr std::chrono::milliseconds lifeline_patience{4000};

// Sends reports in several messages, so that a hanging disk of one job does not delay the reports of others.
class StateParts {
 public:
  StateParts(Stream& stream, wire::Moment now, bool has_several) : stream_(stream), now_(now) {
    if (has_several) {
      try {
        sender_ = std::thread([this] { send_in_time(); });
      } catch (const std::system_error&) {
        // At the process limit, only add() sends.
      }
    }
  }
  StateParts(const StateParts&) = delete;
  StateParts& operator=(const StateParts&) = delete;
  ~StateParts() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_one();
    if (sender_.joinable()) {
      sender_.join();
    }
  }

  void add(wire::JobReport report) {
    const std::size_t size = estimate_size(report);
    const std::lock_guard lock(mutex_);
    if (size_ + size > most_bytes_in_part) {
      send();
    }
    size_ += size;
    reports_.push_back(std::move(report));
    if (reports_.size() == most_jobs_in_part || SteadyClock::now() >= sent_at_ + part_interval) {
      send();
    }
    changed_.notify_one();
  }
  // Sends the remaining reports, and an empty message if none was sent before.
  void finish() {
    const std::lock_guard lock(mutex_);
    if (!reports_.empty() || !has_sent_) {
      send_all();
    }
  }
  bool is_closed() {
    const std::lock_guard lock(mutex_);
    return stream_.is_closed();
  }

 private:
  void send_in_time() {
    std::unique_lock lock(mutex_);
    while (!is_over_) {
      if (reports_.empty()) {
        changed_.wait(lock);
      } else if (SteadyClock::now() >= sent_at_ + part_interval) {
        send();
      } else {
        changed_.wait_until(lock, sent_at_ + part_interval);
      }
    }
  }
  // The caller must hold the mutex.
  void send() {
    if (!reports_.empty()) {
      send_all();
    }
  }
  void send_all() {
    stream_.send(wire::StateReply{.now = now_, .jobs = std::exchange(reports_, {})});
    size_ = 0;
    sent_at_ = SteadyClock::now();
    has_sent_ = true;
  }

  Stream& stream_;
  const wire::Moment now_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<wire::JobReport> reports_;
  std::size_t size_ = 0;
  SteadyClock::time_point sent_at_ = SteadyClock::now();
  bool has_sent_ = false;
  bool is_over_ = false;
  std::thread sender_;
};

// Waits until the lifeline of a new launch has reported its state, or the job is over.
void await_lifeline(const Path& job_folder, const Stream& stream) {
  const auto end = SteadyClock::now() + lifeline_patience;
  while (SteadyClock::now() < end && !stream.is_closed() && !read_own_history(job_folder).has_ended()) {
    const auto lifeline = look_at(job_folder / "lifeline");
    if (lifeline && lifeline->st_size > 0) {
      return;
    }
    ::usleep(10'000);
  }
}

}  // namespace

void answer_state(const Host& host, const wire::StateRequest& request, Stream& stream) {
  Backends backends(host, JobsFolder::of(host, request.place));
  if (request.await_lifeline && !request.ids.empty()) {
    await_lifeline(backends.folder().jobs / request.ids.front(), stream);
  }
  StateParts parts(stream, read_wall_clock(), request.ids.size() > 1);
  Reporter reporter(backends);
  const std::set<std::string> claimed(request.claim.begin(), request.claim.end());
  std::vector<wire::JobReport> open;
  for (const std::string& id : request.ids) {
    if (parts.is_closed()) {
      break;
    }
    const ReportOptions options{.claim = claimed.contains(id), .last_line = request.last_lines};
    wire::JobReport report = reporter.report(id, options);
    if (reporter.is_open(id)) {
      open.push_back(std::move(report));
    } else {
      parts.add(std::move(report));
    }
  }
  reporter.finish(open);
  for (wire::JobReport& report : open) {
    parts.add(std::move(report));
  }
  parts.finish();
}

}  // namespace remote::agent
