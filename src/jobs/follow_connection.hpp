#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <remote/error.hpp>
#include <remote/instant.hpp>

#include "jobs/follow.hpp"
#include "jobs/site.hpp"
#include "jobs/transitions.hpp"
#include "servers/agent.hpp"
#include "ssh/connection.hpp"

namespace remote::jobs {

// A followed job and its current position in the output. It outlives the connections used to follow it. One
// thread at a time.
struct Followed {
  using Output = std::function<void(std::size_t, ssh::Stream, std::string_view)>;

  std::size_t index = 0;
  Job job;
  bool silent = false;           // only wait for its end
  std::optional<int> rank{};     // see FollowOptions::ranks
  bool positioned = false;       // resume at the offsets instead of the last lines
  std::uint64_t out_offset = 0;  // of the next byte to pass on
  std::uint64_t err_offset = 0;
  std::optional<Error> failure{};           // why only this job cannot be followed
  std::optional<wire::JobReport> report{};  // its state after it was followed to the end

  // State of the current stream.
  servers::Agent::StreamId stream = 0;
  ExactInstant asked{};
  // Lower and upper bound of how far the server's clock is ahead.
  std::chrono::milliseconds least_ahead{};
  std::chrono::milliseconds most_ahead{};

  wire::FollowRequest request(const FollowOptions& options) const;
  // Handlers for the server's messages. They set `failure` if only this job cannot be followed.
  void take(const wire::Reply& reply, ExactInstant now);
  void take(std::string_view data, const Output& output);  // rethrows exceptions of `output`
  void end();
  Clocks clocks(ExactInstant now) const;

 private:
  void fail(const Error& error);
};

// Distinguishes a server that is gone for good from a laptop that is offline, based on the launch's other
// servers. Any thread.
class Losses {
 public:
  using Clock = std::chrono::steady_clock;

  Losses(const std::vector<Job>& jobs, const FollowOptions& options);

  void ended(std::size_t index, const Job& job, Clock::time_point now = Clock::now());
  // Whether to stop waiting for a server that has been silent since then. True if its launch's lifelines
  // stopped ranks because it was lost, or a later attempt ran without it to its end, and the grace is over;
  // or if it has been silent for lost_after and the grace, and all ranks on servers that still answer have
  // ended meanwhile. Always false for jobs of different launches, and while no other server answers, because
  // the laptop may be offline.
  bool gives_up(const std::string& server, Clock::time_point silent_since,
                Clock::time_point now = Clock::now());
  // Call this when a silent server answers again.
  void answers(const std::string& server);

 private:
  void note(const Job& job, Clock::time_point now);

  mutable std::mutex mutex_;
  std::chrono::seconds lost_after_;
  std::chrono::seconds grace_;  // how long after the other ranks a server can still report its own
  bool one_launch_;
  std::map<std::string, Clock::time_point> lost_;  // servers reported as lost, and when we learned of it
  std::map<std::size_t, std::string> running_;     // the server of each job that has not ended, by index
  std::set<std::string> silent_;                   // servers
  std::optional<Clock::time_point> last_end_;
};

// State shared by the workers of one call, and its result. Any thread.
struct FollowTask {
  Site site;
  std::vector<Job> jobs;
  const FollowOptions& options;
  const FollowEvents& events;
  std::mutex mutex{};  // guards jobs and errors
  std::vector<Error> errors{};
  std::vector<std::string> gone{};
  Losses losses{jobs, options};

  void fail(const std::string& server, const Error& error);
  void settle(const std::string& server);
  // Passes the final state of a job to the store, `jobs` and events.ended.
  void done(const Followed& followed, const Job& now);
  // Stops waiting for this server and its jobs.
  void give_up(const std::string& server, const std::list<Followed>& waiting, const Error& why);
};

// Follows jobs of one server over a connection to it, on one channel. One thread.
class FollowConnection {
 public:
  // Removes finished jobs from `jobs`.
  FollowConnection(ssh::Connection& connection, std::list<Followed>& jobs, FollowTask& task)
      : connection_(connection), jobs_(jobs), task_(task) {}

  // Returns when all jobs are finished. Throws ssh::Unreachable if the connection breaks, and
  // ssh::TooManyChannels. Sets the flag when a byte of a job arrives.
  void serve(bool& heard);

 private:
  void follow_over(servers::Agent& agent);
  void open(servers::Agent& agent, Followed& followed);
  void settle(servers::Agent& agent);
  void retry_later();

  ssh::Connection& connection_;
  std::list<Followed>& jobs_;
  FollowTask& task_;
  bool heard_ = false;  // this agent has sent a byte of a job
  bool has_answered_ = false;
  int idle_rounds_ = 0;  // number of agents that ended soon without sending a new byte
};

}  // namespace remote::jobs
