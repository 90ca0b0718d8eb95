#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <remote/cancel.hpp>
#include <remote/error.hpp>

#include "jobs/follow.hpp"
#include "jobs/followed.hpp"
#include "jobs/store.hpp"
#include "ssh/connection.hpp"

namespace remote::jobs {

// The jobs of one server that wait for a connection. Any thread.
class WaitingJobs {
 public:
  std::unique_ptr<Followed> next();  // nullptr when none waits
  // Taken for nothing: the first to be taken again. Returns how many wait now.
  std::size_t refuse(std::unique_ptr<Followed> followed);
  // Its channel is gone: it begins anew, after the others.
  void give_back(std::unique_ptr<Followed> followed);
  bool empty() const;
  // For the end, when nobody else uses it.
  const std::deque<std::unique_ptr<Followed>>& rest() const { return jobs_; }

 private:
  mutable std::mutex mutex_;
  std::deque<std::unique_ptr<Followed>> jobs_;
};

// What following comes to, by all workers. Any thread.
class FollowRecord {
 public:
  FollowRecord(std::vector<Job>& jobs, Store& store, const FollowEvents& events)
      : jobs_(jobs), store_(store), events_(events) {}

  void fail(const std::string& server, const Error& error);
  // A job is done with: as it is now goes to the store, to the result and to events.ended.
  void done(const Followed& followed, const Job& now);
  std::vector<Error> take_errors() { return std::move(errors_); }

 private:
  std::vector<Job>& jobs_;
  Store& store_;
  const FollowEvents& events_;
  std::mutex mutex_;
  std::vector<Error> errors_;
};

// Follows the jobs that wait for a server over one connection to it. One thread.
class FollowConnection {
 public:
  FollowConnection(ssh::Connection& connection, WaitingJobs& waiting, FollowRecord& record,
                   const FollowOptions& options, const FollowEvents& events, const Cancel& cancel)
      : connection_(connection),
        waiting_(waiting),
        record_(record),
        options_(options),
        events_(events),
        cancel_(cancel) {}

  // Until nothing waits and nothing is open: true. False when the server lets not even one channel be opened.
  // Calls `more_wanted` when it takes some of the jobs and refuses a channel for the others. Throws
  // ssh::Unreachable when the connection breaks; what was open then waits again. `heard` is set when a byte
  // of a job has come over it.
  bool serve(const std::function<void()>& more_wanted, bool& heard);

 private:
  struct Open {
    std::unique_ptr<Followed> followed;
    std::unique_ptr<ssh::Channel> channel;
    std::uint64_t begin = 0;  // Followed::bytes() when it was opened
    std::string input;        // of the script, what is not yet sent

    bool progress() const { return followed->bytes() > begin; }
  };

  std::size_t open_waiting();
  Open open_one(Followed& followed);
  static void feed(Open& open);
  static bool ready(const Open& open);
  void wait_until_ready();
  void settle(Open& open, bool& heard);
  bool finish(Open& open);
  std::optional<StatusAnswer> ask(const Followed& followed);
  bool again(Followed& followed, bool progress) const;

  ssh::Connection& connection_;
  WaitingJobs& waiting_;
  FollowRecord& record_;
  const FollowOptions& options_;
  const FollowEvents& events_;
  const Cancel& cancel_;
  std::list<Open> open_;
};

}  // namespace remote::jobs
