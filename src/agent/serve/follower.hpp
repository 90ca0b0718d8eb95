#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <poll.h>

#include "agent/host/host.hpp"
#include "agent/job/backend.hpp"
#include "agent/job/follow.hpp"
#include "agent/serve/loop.hpp"
#include "agent/serve/output.hpp"
#include "wire/jobs.hpp"

// Follows any number of jobs of one folder for a client, with two threads.

namespace remote::agent {

// A followed job. First its output is read, then its end is reported.
struct FollowedJob {
  FollowedJob(std::uint32_t number, wire::FollowRequest wanted) : stream(number), request(std::move(wanted)) {
    request.follow = request.follow || request.wait_only;
  }

  enum class Step { reading, was_read, finished };

  const std::uint32_t stream;
  wire::FollowRequest request;
  std::atomic<Step> step = Step::reading;
  std::atomic<bool> is_aborted = false;
  std::atomic<bool> has_ended = false;
  std::atomic<int> round = 0;  // incremented if the job turns out to continue
  wire::SendCredit credit{};   // guarded by FollowedJobs

  // Used by the OutputLoop.
  std::optional<OutputReader> reader{};
  int last_round = 0;
  bool is_finishing = false;
  bool is_due = true;
  bool is_polled = true;  // the kernel does not report changes of its files
  std::vector<int> watches{};

  // Used by the EndLoop.
  std::optional<EndWatch> watch{};
  std::chrono::steady_clock::time_point next_look{};
  std::chrono::milliseconds pause{200};  // before the next check of a job that turned out to continue
};

// The followed jobs, shared by all threads. Thread-safe.
class FollowedJobs {
 public:
  // `ended` is called whenever a stream ends.
  FollowedJobs(Output& output, std::function<void()> ended) : output_(output), ended_(std::move(ended)) {}

  Output& output() { return output_; }
  void add(std::uint32_t stream, const wire::FollowRequest& request);
  std::vector<std::shared_ptr<FollowedJob>> list() const;
  bool has(std::uint32_t stream) const;
  // These two ignore unknown streams. grant() throws Malformed.
  void grant(std::uint32_t stream, std::uint32_t bytes);
  void abort(std::uint32_t stream);

  // These may only be called by the thread that handles the job's current step.
  std::size_t credit(const FollowedJob& job) const;
  void send_data(FollowedJob& job, const wire::Bytes& payload);
  void finish(FollowedJob& job);
  void refuse(FollowedJob& job, const char* reason);

 private:
  Output& output_;
  std::function<void()> ended_;
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::shared_ptr<FollowedJob>> jobs_;
};

// Sends the outputs of jobs.
class OutputLoop final : public Loop {
 public:
  OutputLoop(const Host& host, const JobsFolder& folder, FollowedJobs& jobs, std::function<void()> was_read);
  ~OutputLoop() override;

 private:
  int prepare_more(std::vector<pollfd>& fds) override;
  void do_step() override;
  void take_changes();
  void begin(const std::shared_ptr<FollowedJob>& job);
  void watch(const std::shared_ptr<FollowedJob>& job);
  void advance(const std::shared_ptr<FollowedJob>& job);
  void copy(FollowedJob& job);
  void unwatch(FollowedJob& job);

  const Host& host_;
  const JobsFolder& folder_;
  FollowedJobs& jobs_;
  std::function<void()> was_read_;
  int inotify_ = -1;
  std::multimap<int, std::shared_ptr<FollowedJob>> watched_;  // by watch descriptor
  std::chrono::steady_clock::time_point last_poll_{};
  std::chrono::steady_clock::time_point last_check_{};  // of all files, changed or not
};

// Detects and reports the ends of jobs.
class EndLoop final : public Loop {
 public:
  EndLoop(const Host& host, const JobsFolder& folder, FollowedJobs& jobs, std::function<void()> has_ended);
  ~EndLoop() override;

 private:
  int prepare_more(std::vector<pollfd>& fds) override;
  void do_step() override;
  static std::vector<FollowedJob*> find_due(const std::vector<std::shared_ptr<FollowedJob>>& jobs);
  void look(FollowedJob& job);
  void report(std::vector<std::shared_ptr<FollowedJob>> jobs);
  void report(FollowedJob& job, wire::Moment now, wire::JobReport report);

  const Host& host_;
  const JobsFolder& folder_;
  FollowedJobs& jobs_;
  std::function<void()> has_ended_;
  Backends backends_;
};

class Follower {
 public:
  Follower(const Host& host, const wire::JobsPlace& place, Output& output, std::function<void()> ended);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  void add(std::uint32_t stream, const wire::FollowRequest& request);
  bool has(std::uint32_t stream) const { return jobs_.has(stream); }
  void grant(std::uint32_t stream, std::uint32_t bytes);
  void abort(std::uint32_t stream);
  // The loops without a thread.
  std::vector<Loop*> loops();

 private:
  JobsFolder folder_;
  FollowedJobs jobs_;
  OutputLoop output_loop_;
  EndLoop end_loop_;
};

}  // namespace remote::agent
