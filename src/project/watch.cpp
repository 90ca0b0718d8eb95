// Samples the servers and their jobs repeatedly. Each server has a thread with its own connection, so that a
// server that does not answer does not delay the others.

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/error_of.hpp"
#include "base/files.hpp"
#include "base/log.hpp"
#include "base/threads.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/sample.hpp"
#include "jobs/transitions.hpp"
#include "project/core.hpp"
#include "project/gpu_samples.hpp"
#include "project/sweep.hpp"
#include "servers/python_env.hpp"

namespace remote::project {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The vendors' GPU programs may take 10 s without any output.
constexpr milliseconds patience{15'000};
constexpr std::chrono::seconds connect_limit{5};

// State that the threads share.
class Board {
 public:
  Board() : pipe_(make_pipe()) {
    for (const UniqueFd* end : {&pipe_.read, &pipe_.write}) {
      ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
    }
  }

  // The unfinished jobs, from the records here.
  void set_jobs(const std::vector<Job>& all) {
    std::map<std::string, std::vector<Job>> sorted;
    for (const Job& job : all) {
      sorted[job.server].push_back(job);
    }
    const std::lock_guard lock(mutex_);
    jobs_ = std::move(sorted);
  }
  std::vector<Job> jobs_of(const std::string& server) const {
    const std::lock_guard lock(mutex_);
    const auto found = jobs_.find(server);
    return found == jobs_.end() ? std::vector<Job>() : found->second;
  }

  void put(std::size_t index, ServerSample sample) {
    {
      const std::lock_guard lock(mutex_);
      samples_[index] = std::move(sample);
    }
    static_cast<void>(
        !::write(pipe_.write.get(), "s", 1));  // if the pipe is full, the reader already has a wakeup
  }
  // The new samples, by server index; only the newest of each server.
  std::map<std::size_t, ServerSample> take() {
    std::array<char, 256> signs{};
    while (::read(pipe_.read.get(), signs.data(), signs.size()) > 0) {
    }
    const std::lock_guard lock(mutex_);
    return std::exchange(samples_, {});
  }
  // Readable if there are new samples.
  int fd() const { return pipe_.read.get(); }

 private:
  Pipe pipe_;
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<Job>> jobs_;
  std::map<std::size_t, ServerSample> samples_;
};

// Samples one server, on its own thread.
class Watcher {
 public:
  Watcher(Core& core, config::Server server, const Cancel& stop)
      : core_(core),
        server_(std::move(server)),
        stop_(stop),
        folder_(jobs::remote_folder_for(core.config, server_)) {
    sample_.server = server_.name;
  }

  // Throws Interrupted.
  const ServerSample& look(const std::vector<Job>& known) {
    try {
      if (!connection_) {
        connection_ = core_.connector().connect(server_, stop_, connect_limit);
        sampler_.emplace(*connection_, stop_);
      }
      ask(known);
      sample_.error.reset();
      sample_.heard_at = now_seconds();
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& error) {
      give_up(error_of(error), known);
    }
    return sample_;
  }

 private:
  void ask(const std::vector<Job>& known) {
    std::vector<Job> asked;
    std::vector<JobSample> others;
    for (const Job& job : known) {
      // A job in another folder is from an earlier configuration: it is displayed from its record.
      if (job.remote_folder == folder_) {
        asked.push_back(job);
      } else {
        others.push_back({job});
      }
    }
    jobs::Sample sample =
        sampler_->take(core_.store, folder_, servers::prologue(core_.config, server_), asked, patience);
    sample_.load = sample.facts.load(earlier_);
    sample_.load.unrecorded = count_unrecorded(core_, sample.facts.running);
    sample_.gpus = std::move(sample.facts.facts.gpus);
    earlier_ = sample.facts.ticks;
    sample_.jobs = std::move(sample.jobs);
    sample_.jobs.insert(sample_.jobs.end(), others.begin(), others.end());
    std::erase_if(sample_.jobs, [](const JobSample& one) { return is_final(one.job.state); });
    std::ranges::sort(sample_.jobs, {}, [](const JobSample& one) { return one.job.key; });
    find_other_keys();
  }

  // Reads the records again only for jobs that were not looked up before.
  void find_other_keys() {
    std::set<std::string> unknown;
    for (const Gpu& gpu : sample_.gpus.gpus) {
      for (const GpuProcess& process : gpu.processes) {
        if (!process.job.empty() && !looked_up_.contains(process.job)) {
          unknown.insert(process.job);
        }
      }
    }
    for (const JobSample& one : sample_.jobs) {
      unknown.erase(one.job.id.text());
    }
    if (unknown.empty()) {
      return;
    }
    for (const Job& job : core_.store.list().jobs) {
      if (unknown.contains(job.id.text())) {
        sample_.other_keys[job.id.text()] = job.key;
      }
    }
    looked_up_.merge(unknown);
  }

  void give_up(const Error& error, const std::vector<Job>& known) {
    sampler_.reset();
    connection_.reset();
    sample_.error.emplace(error.on(server_.name));
    sample_.load.cpu.reset();
    earlier_.reset();
    if (sample_.jobs.empty()) {
      for (const Job& job : known) {
        sample_.jobs.push_back({job});
      }
    }
    for (JobSample& one : sample_.jobs) {  // without an answer, their state is unknown
      if (one.job.state != JobState::unknown) {
        one.job = jobs::as_unanswered(one.job, now_seconds());
      }
    }
  }

  Core& core_;
  config::Server server_;
  const Cancel& stop_;
  RemoteFolder folder_;
  std::unique_ptr<ssh::Connection> connection_;
  std::optional<jobs::Sampler> sampler_;
  std::optional<wire::Ticks> earlier_;
  ServerSample sample_;
  std::set<std::string> looked_up_;  // jobs that are not in sample_.jobs
};

// Samples until `stop`, or once.
void watch_server(Core& core, const config::Server& server, std::size_t index, const WatchRequest& request,
                  Board& board, const Cancel& stop) {
  const SigpipeGuard guard;
  try {
    Watcher watcher(core, server, stop);
    for (auto next = Clock::now();;) {
      board.put(index, watcher.look(board.jobs_of(server.name)));
      if (request.once) {
        return;
      }
      next = std::max(next + request.interval, Clock::now());
      pollfd slot{stop.fd(), POLLIN, 0};
      const auto left = std::chrono::ceil<milliseconds>(next - Clock::now());
      static_cast<void>(::poll(&slot, 1, static_cast<int>(std::max(left, milliseconds(0)).count())));
      stop.check();
    }
  } catch (const Interrupted&) {  // the calling thread knows why
  }
}

// Updates the records of waiting points: the server in a point's record changes when the point is given to
// another one.
void watch_points(Core& core, std::chrono::milliseconds interval, const Cancel& stop) {
  const SigpipeGuard guard;
  try {
    for (;;) {
      try {
        std::vector<Job> jobs = core.store.list({.unfinished_only = true}).jobs;
        place_waiting_points(core, jobs, stop, connect_limit);
      } catch (const Error& error) {
        log_info("", "{}", error.message());
      }
      pollfd slot{stop.fd(), POLLIN, 0};
      static_cast<void>(::poll(&slot, 1, static_cast<int>(interval.count())));
      stop.check();
    }
  } catch (const Interrupted&) {  // the calling thread knows why
  }
}

// Passes on the new samples, and stores their GPU values. Returns the number of servers with a first sample.
std::size_t hand_over(Board& board, const decltype(WatchRequest::on_sample)& on_sample, GpuSamples& kept,
                      std::vector<bool>& seen) {
  std::size_t fresh = 0;
  for (const auto& [index, sample] : board.take()) {
    kept.keep(sample);
    fresh += seen[index] ? 0 : 1;
    seen[index] = true;
    if (on_sample) {
      on_sample(index, sample);
    }
  }
  return fresh;
}

void serve(Core& core, const WatchRequest& request, std::size_t count, Board& board) {
  const auto on_sample = core.on_caller(request.on_sample);
  const auto on_wake = core.asked_of_caller(request.on_wake);
  std::vector<bool> seen(count, false);
  GpuSamples kept(core.config);
  std::vector<pollfd> slots{{core.cancel().fd(), POLLIN, 0}, {board.fd(), POLLIN, 0}};
  for (const int input : request.inputs) {
    slots.push_back({input, POLLIN, 0});
  }
  auto next = Clock::now() + request.interval;
  for (std::size_t missing = count; !request.once || missing > 0;) {
    const auto left = std::max(std::chrono::ceil<milliseconds>(next - Clock::now()), milliseconds(0));
    if (::poll(slots.data(), slots.size(), static_cast<int>(left.count())) < 0) {
      std::ranges::for_each(slots, [](pollfd& slot) { slot.revents = 0; });  // interrupted by a signal
    }
    core.cancel().check();
    missing -= hand_over(board, on_sample, kept, seen);
    bool wake =
        std::any_of(slots.begin() + 2, slots.end(), [](const pollfd& slot) { return slot.revents != 0; });
    if (Clock::now() >= next) {
      next = Clock::now() + request.interval;
      board.set_jobs(stored_jobs(core, {.unfinished_only = true}));  // other programs start and stop jobs too
      wake = true;
    }
    if (wake && on_wake && !on_wake()) {
      return;
    }
  }
}

}  // namespace

void watch(Core& core, const WatchRequest& request) {
  const std::vector<config::Server> servers = core.servers(request.servers);
  core.require_trust();
  Board board;
  std::vector<Job> jobs = stored_jobs(core, {.unfinished_only = true});
  if (request.once) {
    place_waiting_points(core, jobs, core.cancel(), connect_limit);
  }
  board.set_jobs(jobs);
  Cancel stop;
  std::vector<JoiningThread> threads;
  const CancelAtEnd at_end{stop};
  if (!request.once) {
    threads.emplace_back([&] { watch_points(core, request.interval, stop); });
  }
  for (std::size_t i = 0; i < servers.size(); ++i) {
    threads.emplace_back([&, i] { watch_server(core, servers[i], i, request, board, stop); });
  }
  serve(core, request, servers.size(), board);
}

}  // namespace remote::project

namespace remote {

void Project::watch(const WatchRequest& request, const std::optional<Cancel>& cancel) {
  project::call_servers(*state_, cancel, [&](project::Core& core) { project::watch(core, request); });
}

}  // namespace remote
