#include "jobs/follow.hpp"

#include <algorithm>
#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>

#include <fmt/format.h>
#include <poll.h>

#include "base/error_of.hpp"
#include "base/log.hpp"
#include "base/threads.hpp"
#include "jobs/follow_connection.hpp"
#include "jobs/job_servers.hpp"

// Workers: each follows jobs of one server over a connection of its own, and makes it anew when it breaks.

namespace remote::jobs {
namespace {

using std::chrono::milliseconds;

// One server: its jobs that wait for a connection, and the workers that have one.
struct Sharing {
  const config::Server* server = nullptr;
  WaitingJobs waiting;
  std::mutex mutex;
  std::list<JoiningThread> workers;
  std::atomic<bool> reached = false;  // once: from then on a link that cannot be made is a link that broke
  std::atomic<bool> failed = false;   // a worker gave up and said why
};

void start_worker(FollowTask& task, Sharing& sharing);

void nap(milliseconds time, const Cancel& cancel) {
  pollfd slot{cancel.fd(), POLLIN, 0};
  static_cast<void>(::poll(&slot, 1, static_cast<int>(time.count())));
}

// Waits before the next connection: not at all at first, then 0.2 s, 0.4 s … up to 5 s, as a laptop that
// wakes up is back soon.
void pause_after(int failures, const FollowTask& task, const std::string& server, const Error& error) {
  const milliseconds pause(failures > 0 ? std::min(5000, 100 << std::min(failures, 7)) : 0);
  log_info(server, "{}; connecting again in {} ms", error.message(), pause.count());
  if (failures > 0) {
    nap(pause, task.site.cancel);
  }
}

void work(FollowTask& task, Sharing& sharing) {
  using clock = std::chrono::steady_clock;
  int failures = 0;
  int refusals = 0;
  bool lost = false;
  clock::time_point lost_since;
  const auto patient_until = clock::now() + task.options.patience;
  while (!sharing.waiting.empty()) {
    bool heard = false;
    auto begin = clock::now();
    try {
      const auto connection = task.site.connector.connect(*sharing.server, task.site.cancel);
      begin = clock::now();
      if (!sharing.reached.exchange(true)) {
        task.settle(sharing.server->name);
      }
      if (lost) {
        task.losses.answers(sharing.server->name);
        task.events.link(LinkBack{sharing.server->name});
        lost = false;
      }
      FollowConnection following(*connection, sharing.waiting, task);
      if (following.serve([&] { start_worker(task, sharing); }, heard)) {
        failures = 0;
        refusals = 0;
        continue;  // to the end, unless something was given back meanwhile
      }
      constexpr int most_refusals = 50;
      if (++refusals >= most_refusals) {
        throw Error("cannot follow", "the server refuses every session on a new connection",
                    "look at MaxSessions in its sshd_config");
      }
      nap(milliseconds(200), task.site.cancel);
    } catch (const ssh::Unreachable& error) {
      task.site.cancel.check();
      const bool reached = sharing.reached;
      if (!reached && clock::now() >= patient_until) {
        throw;
      }
      if (!lost) {
        lost_since = begin;
        task.events.link(LinkLost{sharing.server->name, error.reason(), reached});
      }
      lost = true;
      if (task.losses.gives_up(sharing.server->name, lost_since)) {
        const auto silent = std::chrono::duration_cast<std::chrono::seconds>(clock::now() - lost_since);
        task.give_up(sharing.server->name, sharing.waiting,
                     Error(fmt::format("no answer for {} s; it is not waited for any more", silent.count()),
                           error.reason())
                         .mended_by(Remedy::list_jobs)
                         .because(error.cause()));
        return;
      }
      if (heard || clock::now() - begin > std::chrono::seconds(10)) {
        failures = 0;  // the link was of use
      }
      pause_after(failures++, task, sharing.server->name, error);
    }
    task.site.cancel.check();
  }
}

void start_worker(FollowTask& task, Sharing& sharing) {
  // A worker ends by an error; what still waits may be another worker's.
  const auto give_up = [&task, &sharing](const std::exception& error) {
    sharing.failed = true;
    task.fail(sharing.server->name, error_of(error));
  };
  const std::lock_guard lock(sharing.mutex);
  try {
    sharing.workers.emplace_back([&task, &sharing, give_up] {
      try {
        work(task, sharing);
      } catch (const Interrupted&) {
        // follow() says so when all workers have ended
      } catch (const std::exception& error) {
        give_up(error);
      }
    });
  } catch (const std::system_error& error) {  // this machine allows no more threads; those there are go on
    give_up(error);
  }
}

void follow_all(FollowTask& task) {
  std::map<std::string, std::unique_ptr<Sharing>> by_server;
  for (std::size_t i = 0; i < task.jobs.size(); ++i) {
    const Job& job = task.jobs[i];
    try {
      const config::Server& server = server_of(task.site.config, job);
      auto& sharing = by_server.try_emplace(job.server, std::make_unique<Sharing>()).first->second;
      sharing->server = &server;
      auto followed = std::make_unique<Followed>();
      followed->index = i;
      followed->job = job;
      followed->silent = i < task.options.silent.size() && task.options.silent[i];
      followed->rank = i < task.options.ranks.size() ? task.options.ranks[i] : std::nullopt;
      sharing->waiting.give_back(std::move(followed));
    } catch (const Error& error) {
      task.fail(job.server, error);  // configs.yaml has this server no longer; the other jobs are followed
    }
  }
  for (const auto& [name, sharing] : by_server) {
    start_worker(task, *sharing);
  }
  for (const auto& [name, sharing] : by_server) {
    // A worker may start further ones while it is waited for: they are appended behind it.
    for (;;) {
      JoiningThread worker;
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
  task.site.cancel.check();
  for (const auto& [name, sharing] : by_server) {
    for (const auto& followed : sharing->waiting.rest()) {
      if (!sharing->failed) {
        task.fail(followed->job.server,
                  Error(fmt::format("job {} was not followed to its end", followed->job.key),
                        "its connection ended")
                      .mended_by(Remedy::list_jobs));
      }
    }
  }
}

}  // namespace

FollowResult follow(const Site& site, std::vector<Job> jobs, const FollowOptions& options,
                    const FollowEvents& events) {
  FollowTask task{site, std::move(jobs), options, events};
  follow_all(task);
  return {std::move(task.jobs), std::move(task.errors), std::move(task.gone)};
}

}  // namespace remote::jobs
