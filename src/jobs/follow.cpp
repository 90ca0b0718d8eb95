#include "jobs/follow.hpp"

#include <algorithm>
#include <list>
#include <map>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <poll.h>

#include "base/error_of.hpp"
#include "base/log.hpp"
#include "base/threads.hpp"
#include "jobs/follow_connection.hpp"
#include "jobs/job_servers.hpp"
#include "ssh/path.hpp"

// Each server has a worker thread, which follows its jobs over one connection and reconnects if that breaks.

namespace remote::jobs {
namespace {

using std::chrono::milliseconds;

struct ServerJobs {
  const config::Server* server = nullptr;
  std::list<Followed> jobs{};  // unfinished ones
  JoiningThread worker{};
  bool failed = false;  // the worker has reported an error
};

void nap(milliseconds time, const Cancel& cancel) {
  pollfd slot{cancel.fd(), POLLIN, 0};
  static_cast<void>(::poll(&slot, 1, static_cast<int>(time.count())));
}

// Delays the next connection: not at all at first, then 0.2 s, 0.4 s … up to 5 s, because a laptop that wakes
// up is soon online again.
void pause_after(int failures, const FollowTask& task, const std::string& server, const Error& error) {
  const milliseconds pause(failures > 0 ? std::min(5000, 100 << std::min(failures, 7)) : 0);
  log_info(server, "{}; connecting again in {} ms", error.message(), pause.count());
  if (failures > 0) {
    nap(pause, task.site.cancel);
  }
}

void work(FollowTask& task, ServerJobs& mine) {
  using clock = std::chrono::steady_clock;
  const std::string& name = mine.server->name;
  int failures = 0;
  int refusals = 0;
  bool reached = false;  // once true, a failed connection counts as a broken link
  bool lost = false;
  bool advised = false;  // the hint about lost packets has been given
  clock::time_point lost_since;
  const auto patient_until = clock::now() + task.options.patience;
  while (!mine.jobs.empty()) {
    bool heard = false;
    auto begin = clock::now();
    try {
      const auto connection = task.site.connector.connect(*mine.server, task.site.cancel);
      begin = clock::now();
      if (!std::exchange(reached, true)) {
        task.settle(name);
      }
      if (lost) {
        task.losses.answers(name);
        task.events.link(LinkBack{name});
        lost = false;
      }
      FollowConnection(*connection, mine.jobs, task).serve(heard);
    } catch (const ssh::TooManyChannels&) {
      constexpr int most_refusals = 50;
      if (++refusals >= most_refusals) {
        throw Error("cannot follow", "the server refuses every session on a new connection",
                    "check MaxSessions in its sshd_config");
      }
      nap(milliseconds(200), task.site.cancel);
    } catch (const ssh::Unreachable& error) {
      task.site.cancel.check();
      if (!reached && clock::now() >= patient_until) {
        throw;
      }
      if (!lost) {
        lost_since = begin;
        const bool advises = ssh::suspects_path(error) && !std::exchange(advised, true);
        task.events.link(LinkLost{name, error.reason(), reached, advises ? error.hint() : ""});
      }
      lost = true;
      if (task.losses.gives_up(name, lost_since)) {
        const auto silent = std::chrono::duration_cast<std::chrono::seconds>(clock::now() - lost_since);
        task.give_up(name, mine.jobs,
                     Error(fmt::format("no answer for {} s; giving up", silent.count()), error.reason())
                         .mended_by(Remedy::list_jobs)
                         .because(error.cause()));
        mine.jobs.clear();
        return;
      }
      if (heard || clock::now() - begin > std::chrono::seconds(10)) {
        failures = 0;  // the link worked
      }
      pause_after(failures++, task, name, error);
    }
    task.site.cancel.check();
  }
}

void start_worker(FollowTask& task, ServerJobs& mine) {
  const auto fail = [&task, &mine](const std::exception& error) {
    mine.failed = true;
    task.fail(mine.server->name, error_of(error));
  };
  try {
    mine.worker = JoiningThread([&task, &mine, fail] {
      try {
        work(task, mine);
      } catch (const Interrupted&) {
        // follow() reports it after all workers have ended
      } catch (const std::exception& error) {
        fail(error);
      }
    });
  } catch (const std::system_error& error) {  // too many threads on this machine; the other workers continue
    fail(error);
  }
}

void follow_all(FollowTask& task) {
  std::map<std::string, ServerJobs> by_server;
  for (std::size_t i = 0; i < task.jobs.size(); ++i) {
    const Job& job = task.jobs[i];
    try {
      const config::Server& server = server_of(task.site.config, job);
      ServerJobs& of_server = by_server[job.server];
      of_server.server = &server;
      Followed& followed = of_server.jobs.emplace_back();
      followed.index = i;
      followed.job = job;
      followed.silent = i < task.options.silent.size() && task.options.silent[i];
      followed.rank = i < task.options.ranks.size() ? task.options.ranks[i] : std::nullopt;
    } catch (const Error& error) {
      task.fail(job.server, error);  // the server is missing in configs.yaml; continue with the other jobs
    }
  }
  for (auto& [name, of_server] : by_server) {
    start_worker(task, of_server);
  }
  for (auto& [name, of_server] : by_server) {
    if (of_server.worker.joinable()) {
      of_server.worker.join();
    }
  }
  task.site.cancel.check();
}

}  // namespace

FollowResult follow(const Site& site, std::vector<Job> jobs, const FollowOptions& options,
                    const FollowEvents& events) {
  FollowTask task{site, std::move(jobs), options, events};
  follow_all(task);
  return {std::move(task.jobs), std::move(task.errors), std::move(task.gone)};
}

}  // namespace remote::jobs
