#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <remote/error.hpp>

#include "base/login_shell.hpp"
#include "jobs/follow.hpp"
#include "jobs/protocol.hpp"
#include "jobs/site.hpp"
#include "ssh/connection.hpp"
#include "ssh/pump.hpp"

namespace remote::jobs {

// One of a job's two streams: what stands before the "@remote1 follow" line is the login shell's, what comes
// after it is the job's. Each stream has its own such line, because the two arrive independently.
struct StreamState {
  std::uint64_t offset = 0;  // of the next byte to hand over
  Greeting greeting;

  bool begun() const { return greeting.over(); }
};

// A job that is followed, and how far. It outlives the channels on which it is followed. One thread at a
// time.
struct Followed {
  using Output = std::function<void(std::size_t, ssh::Stream, std::string_view)>;

  std::size_t index = 0;
  Job job;
  bool positioned = false;  // the offsets count: from now on they are asked for, not lines
  StreamState out;
  StreamState err;
  bool silent = false;           // only its end is of interest
  std::optional<int> rank{};     // see FollowOptions::ranks
  int idle_rounds = 0;           // how often it was opened again without a new byte
  std::optional<Error> failure;  // why it, unlike its neighbours, cannot be followed

  // Of both streams together: grows with every byte that is handed over.
  std::uint64_t bytes() const { return out.offset + err.offset; }
  // The server has told where its streams are, on this channel or on one before.
  bool answered() const { return positioned || out.begun() || err.begun(); }
  // What to ask the server for on a new channel.
  FollowRequest request(const FollowOptions& options) const;
  // Takes a piece of what a channel brings, and hands the job's bytes to `output`. Sets `failure` where
  // throwing would end the following of all jobs on this connection; throws what `output` throws.
  void take(ssh::Stream which, std::string_view data, const Output& output);
  // The channel is gone: the streams begin anew on the next one, at the byte where they are.
  void begin_anew();
};

// The jobs of one server that wait for a connection. Any thread.
class WaitingJobs {
 public:
  std::unique_ptr<Followed> next();  // nullptr when none waits
  // Puts back what next() gave, as the next one. Returns how many wait now.
  std::size_t refuse(std::unique_ptr<Followed> followed);
  // Puts back a job whose channel is gone: it begins anew, after the others.
  void give_back(std::unique_ptr<Followed> followed);
  bool empty() const;
  // Only when no other thread uses this any more.
  const std::deque<std::unique_ptr<Followed>>& rest() const { return jobs_; }

 private:
  mutable std::mutex mutex_;
  std::deque<std::unique_ptr<Followed>> jobs_;
};

// Tells a server that is gone for good from a laptop that is away from it: by what the other servers of the
// launch tell. Any thread.
class Losses {
 public:
  using Clock = std::chrono::steady_clock;

  Losses(const std::vector<Job>& jobs, const FollowOptions& options);

  void ended(std::size_t index, const Job& job, Clock::time_point now = Clock::now());
  // Whether nobody need wait any more for this server, which has not answered since then: its launch's
  // lifelines have ended ranks because it was lost, and the grace is over; or it has been silent for
  // lost_after and the grace, and all ranks on servers that are not silent have ended meanwhile. Never where
  // these are not the jobs of one launch, nor while no other server tells anything: the laptop may be without
  // a network.
  bool gives_up(const std::string& server, Clock::time_point silent_since,
                Clock::time_point now = Clock::now());
  // One that was silent is back.
  void answers(const std::string& server);

 private:
  void note(const Job& job, Clock::time_point now);

  mutable std::mutex mutex_;
  std::chrono::seconds lost_after_;
  std::chrono::seconds grace_;  // so long after the others' ends a server may yet answer, and bring its own
  bool one_launch_;
  std::map<std::string, Clock::time_point> lost_;  // servers that the lifelines call lost, since when we know
  std::map<std::size_t, std::string> running_;     // the server of each job that has not ended, by index
  std::set<std::string> silent_;                   // servers
  std::optional<Clock::time_point> last_end_;
};

// What the workers of one call share, and what following comes to. Any thread.
struct FollowTask {
  Site site;
  std::vector<Job> jobs;
  const FollowOptions& options;
  const FollowEvents& events;
  std::mutex mutex{};  // of jobs and errors
  std::vector<Error> errors{};
  std::vector<std::string> gone{};
  Losses losses{jobs, options};

  void fail(const std::string& server, const Error& error);
  void settle(const std::string& server);
  // A job is done with: as it is now goes to the store, to `jobs` and to events.ended.
  void done(const Followed& followed, const Job& now);
  // Nobody waits for this server and its jobs any more.
  void give_up(const std::string& server, WaitingJobs& waiting, const Error& why);
};

// Follows the jobs that wait for a server over one connection to it. One thread.
class FollowConnection {
 public:
  FollowConnection(ssh::Connection& connection, WaitingJobs& waiting, FollowTask& task)
      : connection_(connection), waiting_(waiting), task_(task), pump_(connection, task.site.cancel) {}

  // Returns true when nothing waits and nothing is open any more, false when the server does not let even one
  // channel be opened. Calls `more_wanted` when the server opens channels for some of the jobs and refuses
  // the others. Throws ssh::Unreachable when the connection breaks; what was open then waits again. `heard`
  // is set when a byte of a job has come.
  bool serve(const std::function<void()>& more_wanted, bool& heard);

 private:
  struct Open {
    std::unique_ptr<Followed> followed;
    std::unique_ptr<ssh::Flow> flow;
    std::uint64_t begin = 0;  // Followed::bytes() when it was opened

    bool progress() const { return followed->bytes() > begin; }
  };

  std::size_t open_waiting();
  Open open_one(Followed& followed);
  static bool ready(const Open& open);
  void wait_until_ready();
  void settle(Open& open, bool& heard);
  void give_back(bool& heard);
  bool finish(Open& open);
  std::optional<StatusAnswer> ask(const Followed& followed);
  bool again(Followed& followed, bool progress);

  ssh::Connection& connection_;
  WaitingJobs& waiting_;
  FollowTask& task_;
  ssh::Pump pump_;
  std::list<Open> open_;
};

}  // namespace remote::jobs
