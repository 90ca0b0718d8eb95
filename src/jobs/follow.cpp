#include "jobs/follow.hpp"

#include <algorithm>
#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <poll.h>

#include "base/log.hpp"
#include "jobs/follow_connection.hpp"
#include "jobs/remote_folder.hpp"
#include "ssh/errors.hpp"

// Workers: each follows jobs of one server over a connection of its own, and makes it anew when it breaks.

namespace remote::jobs {
namespace {

using std::chrono::milliseconds;

// One server: its jobs that wait for a connection, and the workers that have one.
struct Sharing {
  const config::Server* server = nullptr;
  WaitingJobs waiting;
  std::mutex mutex;
  std::list<std::jthread> workers;
  bool reached = false;  // once: from then on a link that cannot be made is a link that broke
  bool failed = false;   // a worker gave up and said why
};

class Follower {
 public:
  Follower(const config::Config& config, Store& store, ssh::Connector& connector, std::vector<Job>& jobs,
           const FollowOptions& options, const FollowEvents& events, const Cancel& cancel)
      : config_(config),
        connector_(connector),
        jobs_(jobs),
        options_(options),
        events_(events),
        cancel_(cancel),
        record_(jobs, store, events) {}

  std::vector<Error> run();

 private:
  void start_worker(Sharing& sharing);
  void work(Sharing& sharing);
  void give_up(Sharing& sharing, const Error& error);
  void nap(milliseconds time) const;

  const config::Config& config_;
  ssh::Connector& connector_;
  std::vector<Job>& jobs_;
  const FollowOptions& options_;
  const FollowEvents& events_;
  const Cancel& cancel_;
  FollowRecord record_;
};

void Follower::nap(milliseconds time) const {
  pollfd slot{cancel_.fd(), POLLIN, 0};
  static_cast<void>(::poll(&slot, 1, static_cast<int>(time.count())));
}

// A worker ends by this error; what waits still may be another's.
void Follower::give_up(Sharing& sharing, const Error& error) {
  {
    const std::lock_guard lock(sharing.mutex);
    sharing.failed = true;
  }
  record_.fail(sharing.server->name, error);
}

void Follower::work(Sharing& sharing) {
  using clock = std::chrono::steady_clock;
  int failures = 0;
  int refusals = 0;
  bool lost = false;
  const auto patient_until = clock::now() + options_.patience;
  while (!sharing.waiting.empty()) {
    bool heard = false;
    auto begin = clock::now();
    try {
      const auto connection = connector_.connect(*sharing.server, cancel_);
      begin = clock::now();
      {
        const std::lock_guard lock(sharing.mutex);
        sharing.reached = true;
      }
      if (lost) {
        events_.link(LinkBack{sharing.server->name});
        lost = false;
      }
      FollowConnection following(*connection, sharing.waiting, record_, options_, events_, cancel_);
      if (following.serve([&] { start_worker(sharing); }, heard)) {
        failures = 0;
        refusals = 0;
        continue;  // to the end, unless something was given back meanwhile
      }
      constexpr int most_refusals = 50;
      if (++refusals >= most_refusals) {
        throw Error("cannot follow", "the server refuses every session on a new connection",
                    "look at MaxSessions in its sshd_config");
      }
      nap(milliseconds(200));
    } catch (const ssh::Unreachable& error) {
      cancel_.check();
      bool reached = false;
      {
        const std::lock_guard lock(sharing.mutex);
        reached = sharing.reached;
      }
      if (!reached && clock::now() >= patient_until) {
        throw;
      }
      if (!lost) {
        events_.link(LinkLost{sharing.server->name, error.reason(), reached});
      }
      lost = true;
      // Once at once, then 0.2 s, 0.4 s … up to 10 s: a laptop that wakes up is back soon. A link that was of
      // use begins the count anew.
      if (heard || clock::now() - begin > std::chrono::seconds(10)) {
        failures = 0;
      }
      const milliseconds pause(failures > 0 ? std::min(10000, 100 << std::min(failures, 7)) : 0);
      log_info(sharing.server->name, "{}; connecting again in {} ms", error.message(), pause.count());
      if (failures > 0) {
        nap(pause);
      }
      ++failures;
    }
    cancel_.check();
  }
}

void Follower::start_worker(Sharing& sharing) {
  const std::lock_guard lock(sharing.mutex);
  sharing.workers.emplace_back([this, &sharing] {
    try {
      work(sharing);
    } catch (const Interrupted&) {
      // run() says so when all workers have ended
    } catch (const Error& error) {
      give_up(sharing, error);
    } catch (const std::exception& error) {
      give_up(sharing, Error("cannot follow", error.what()));
    }
  });
}

std::vector<Error> Follower::run() {
  std::map<std::string, std::unique_ptr<Sharing>> by_server;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    auto followed = std::make_unique<Followed>();
    followed->index = i;
    followed->job = jobs_[i];
    followed->silent = i < options_.silent.size() && options_.silent[i];
    const config::Server* server = nullptr;
    try {
      server = &server_of(config_, jobs_[i]);
    } catch (const Error& error) {
      record_.fail(jobs_[i].server,
                   error);  // a server that configs.yaml has no longer; the other jobs are followed
      continue;
    }
    auto& sharing = by_server[jobs_[i].server];
    if (!sharing) {
      sharing = std::make_unique<Sharing>();
      sharing->server = server;
    }
    sharing->waiting.give_back(std::move(followed));
  }
  for (const auto& [name, sharing] : by_server) {
    start_worker(*sharing);
  }
  for (const auto& [name, sharing] : by_server) {
    // A worker may start further ones while it is waited for: they are appended behind it.
    for (;;) {
      std::jthread worker;
      {
        const std::lock_guard lock(sharing->mutex);
        if (sharing->workers.empty()) {
          break;
        }
        worker = std::move(sharing->workers.front());
        sharing->workers.pop_front();
      }
      worker.join();
    }
  }
  cancel_.check();
  for (const auto& [name, sharing] : by_server) {
    for (const auto& followed : sharing->waiting.rest()) {
      if (!sharing->failed) {
        record_.fail(followed->job.server,
                     Error(fmt::format("job {} was not followed to its end", followed->job.key),
                           "its connection ended"));
      }
    }
  }
  return record_.take_errors();
}

}  // namespace

FollowResult follow(const config::Config& config, Store& store, ssh::Connector& connector,
                    std::vector<Job> jobs, const FollowOptions& options, const FollowEvents& events,
                    const Cancel& cancel) {
  FollowResult result;
  result.jobs = std::move(jobs);
  Follower follower(config, store, connector, result.jobs, options, events, cancel);
  result.errors = follower.run();
  return result;
}

}  // namespace remote::jobs
