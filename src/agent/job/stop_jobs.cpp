#include "agent/job/stop_jobs.hpp"

#include <algorithm>
#include <csignal>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "agent/job/init_file.hpp"
#include "agent/job/stop_record.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

using std::chrono::milliseconds;
using Outcome = KillResult::Entry::Outcome;

// A job that is being stopped.
struct StopCase {
  StopTarget target{};
  bool had_ended = false;
  std::optional<wire::StopRequested> request{};  // as recorded
  Stopper* stopper = nullptr;
};

class JobStopper {
 public:
  JobStopper(Backends& backends, const StopOrder& order) : backends_(backends), order_(order) {}

  std::vector<StoppedJob> stop();

 private:
  struct Due {
    std::optional<JobRecord> job{};  // nullopt if the job needs no stop
    StoppedJob answer{};
  };

  Due check(const std::string& id);
  Due refuse(const std::string& id, std::string_view reason) const;
  bool has_process(const std::string& id);
  void record(StopCase& one);
  void stop_cases();
  StoppedJob finish(StopCase& one);

  const Host& host() const { return backends_.host(); }
  const JobsFolder& folder() const { return backends_.folder(); }

  Backends& backends_;
  const StopOrder& order_;
  std::optional<std::set<std::string>> jobs_with_processes_{};
  std::map<std::string, StopCase> cases_{};  // by id
  std::vector<std::unique_ptr<Stopper>> stoppers_{};
};

StoppedJob answer_with(const std::string& id, Outcome outcome, bool is_proven_gone) {
  return {.result = {.id = id, .outcome = outcome}, .is_proven_gone = is_proven_gone};
}

JobStopper::Due JobStopper::refuse(const std::string& id, std::string_view reason) const {
  Due due{.answer = answer_with(id, Outcome::refused, false)};
  due.answer.result.reason = wire::to_line(reason, 1000);
  return due;
}

// Returns whether any process has the job's id in its environment. Reads the process list only once.
bool JobStopper::has_process(const std::string& id) {
  if (!jobs_with_processes_) {
    jobs_with_processes_.emplace();
    for (const auto& [pid, job] : find_job_processes(host())) {
      const auto process = read_process(host(), pid);
      if (process && !process->is_dead()) {
        jobs_with_processes_->insert(job);
      }
    }
  }
  return jobs_with_processes_->contains(id);
}

// Finds out whether the job needs a stop.
JobStopper::Due JobStopper::check(const std::string& id) {
  const bool may_start = order_.claim.contains(id);
  Due none{.answer = answer_with(id, Outcome::none, false)};
  std::optional<JobRecord> job = read_record(host(), folder(), id);
  JobState state{.phase = wire::JobPhase::starting};
  if (job) {
    if (!job->never_started() && !job->is_claimed) {
      state = backends_.find_state(*job, Look::brief);
    }
  } else if (has_process(id)) {
    job = JobRecord{.id = id, .folder = folder().jobs / id};
    state.phase = wire::JobPhase::running;
  } else if (std::string obstacle = find_obstacle(folder(), id); !may_start && !obstacle.empty()) {
    return refuse(id, obstacle);
  }
  if (job && (job->never_started() || job->is_claimed)) {
    return none;
  }
  if (state.phase == wire::JobPhase::starting && (!job || !job->supervisor)) {
    // Claim the job, so that it cannot start, unless its supervisor was faster. Do not recreate the folder of
    // a job that was started before.
    if ((!may_start && !is_folder(folder().jobs / id)) || claim(host(), folder(), id)) {
      return none;
    }
    std::this_thread::sleep_for(milliseconds(100));
    job = read_record(host(), folder(), id);
    if (!job) {
      std::string obstacle = find_obstacle(folder(), id);
      return refuse(id, obstacle.empty() ? "cannot write in " + folder().jobs.string() +
                                               ": no permission, or the disk is full"
                                         : obstacle);
    }
    if (job->never_started() || job->is_claimed) {
      return none;
    }
  }
  if (backends_.find(job->backend) == nullptr) {
    state = backends_.find_state(*job, Look::brief);  // returns the reason
  }
  if (state.phase == wire::JobPhase::unknown) {
    return refuse(id, state.reason);
  }
  if ((state.phase == wire::JobPhase::rebooted || state.phase == wire::JobPhase::ended) &&
      !job->has_result()) {
    leave_init_file(job->folder, job->id);
    return {.answer = answer_with(id, Outcome::ended, true)};
  }
  return {.job = std::move(job)};
}

// Records the stop, before the first signal.
void JobStopper::record(StopCase& one) {
  const JobRecord& job = one.target.job;
  if (one.had_ended || order_.is_between_attempts) {
    return;
  }
  // If the main process is gone too, this stop does not know how the job ended, so the job must not seem to
  // run until it is over.
  const bool is_gone = job.main && !is_alive(host(), *job.main);
  const bool records_end =
      job.backend == "local" && !is_gone && !(job.supervisor && is_alive(host(), job.supervisor->id));
  one.request = record_stop(host(), job, {.signal = order_.signal, .by = order_.by, .at = read_wall_clock()},
                            records_end);
  end_attempts(job);
}

void JobStopper::stop_cases() {
  std::map<std::string, std::vector<StopCase*>> by_backend;
  for (auto& [id, one] : cases_) {
    by_backend[one.target.job.backend].push_back(&one);
  }
  std::vector<Stopper*> stoppers;
  for (const auto& [name, cases] : by_backend) {
    std::vector<StopTarget*> targets;
    for (StopCase* one : cases) {
      targets.push_back(&one->target);
    }
    stoppers_.push_back(backends_.find(name)->stop(std::move(targets)));
    stoppers.push_back(stoppers_.back().get());
    for (StopCase* one : cases) {
      one->stopper = stoppers.back();
    }
  }
  if (stoppers.empty()) {
    return;
  }
  stop_all(stoppers, order_.signal, order_.grace, [&] { return !find_process_limit(host()).empty(); });
  for (Stopper* stopper : stoppers) {
    stopper->find_memory_holders();
  }
}

StoppedJob JobStopper::finish(StopCase& one) {
  const StopTarget& target = one.target;
  const std::string& id = target.job.id;
  StoppedJob answer = answer_with(id, Outcome::survivors, false);
  answer.result.signalled = target.signalled;
  // If only leftovers received a signal, the job had already ended on its own.
  const bool has_main = target.job.backend == "local" && target.job.main;
  const bool had_ended =
      one.had_ended || target.signalled == 0 || (has_main && !target.last_signal.has_value());
  answer.result.survivors = one.stopper->survivors(id);
  const wire::StopRequested* request = one.request ? &*one.request : nullptr;
  if (!answer.result.survivors.empty()) {
    finish_stop(host(), target.job, request, false, answer.result.survivors);
    return answer;
  }
  answer.is_proven_gone = true;
  std::optional<JobRecord> now = read_record(host(), folder(), id);
  bool has_ended = now && now->has_result();
  if (now && !has_ended) {
    has_ended = backends_.find_state(*now, Look::brief).phase == wire::JobPhase::ended || now->has_result();
  }
  if (!has_ended && !had_ended && !order_.is_between_attempts) {
    // The supervisor is dead, so only this process can record the end.
    const int signal = target.last_signal.value_or(order_.signal);
    put_result(host(), target.job, {.how = wire::ProcessEnd::signalled(signal), .by = "kill"});
  }
  finish_stop(host(), target.job, request, had_ended, {});
  if (!order_.is_between_attempts) {
    leave_init_file(target.job.folder, target.job.id);  // in case the supervisor could not
  }
  wake_lifeline(host(), target.job);
  answer.result.outcome = had_ended ? Outcome::ended : Outcome::killed;
  answer.result.suspects = one.stopper->suspects(id);
  return answer;
}

std::vector<StoppedJob> JobStopper::stop() {
  std::vector<std::string> ids;
  std::map<std::string, StoppedJob> answers;
  for (const std::string& id : order_.ids) {
    if (answers.contains(id) || cases_.contains(id)) {
      continue;
    }
    ids.push_back(id);
    Due due = check(id);
    if (!due.job) {
      answers.emplace(id, std::move(due.answer));
      continue;
    }
    StopCase& one = cases_[id];
    one.target.job = *std::move(due.job);
    one.target.keeps_supervisor = order_.is_between_attempts;
    one.had_ended = one.target.job.has_result();
    record(one);
  }
  stop_cases();
  std::vector<StoppedJob> result;
  for (const std::string& id : ids) {
    const auto one = cases_.find(id);
    result.push_back(one != cases_.end() ? finish(one->second) : std::move(answers.at(id)));
  }
  return result;
}

}  // namespace

std::vector<StoppedJob> stop_jobs(Backends& backends, const StopOrder& order) {
  return JobStopper(backends, order).stop();
}

void stop_all(const std::vector<Stopper*>& stoppers, int signal, milliseconds grace,
              const std::function<bool()>& is_at_limit, const StopTime& time) {
  const auto look = [&](bool quick) {
    Remains all;
    for (Stopper* stopper : stoppers) {
      const Remains remains = stopper->look(quick);
      all.has_members = all.has_members || remains.has_members;
      all.is_closing = all.is_closing || remains.is_closing;
    }
    return all;
  };
  const auto send = [&](int number) {
    for (Stopper* stopper : stoppers) {
      stopper->signal(number);
    }
  };
  constexpr milliseconds first_pause{20};
  milliseconds deadline = time.now() + (signal == SIGKILL ? milliseconds(0) : grace);
  milliseconds pause = first_pause;
  int sent = signal;
  bool is_final = false;  // the last KILL was sent
  const milliseconds begin = time.now();
  Remains remains = look(false);
  milliseconds look_time = time.now() - begin;
  send(signal);
  for (;;) {
    if (!remains.has_members && !remains.is_closing) {
      remains = look(false);
      if (!remains.has_members) {
        return;
      }
    }
    if (time.now() >= deadline) {
      if (is_final) {
        look(false);  // update the list, because processes can exit in the meantime
        return;
      }
      sent = SIGKILL;
      is_final = true;
      pause = first_pause;
      look(false);
      if (is_at_limit()) {
        for (Stopper* stopper : stoppers) {
          stopper->freeze();
        }
      }
      send(SIGKILL);
      milliseconds patience{0};
      for (const Stopper* stopper : stoppers) {
        patience = std::max(patience, stopper->patience_after_kill());
      }
      deadline = time.now() + patience;
    }
    // Supervisors that are writing their results exit soon. Checking many processes is expensive, so the
    // pause is at least as long as the last look, up to a limit.
    constexpr milliseconds longest_pause{300};
    const milliseconds wait = remains.has_members ? pause : milliseconds(10);
    time.wait(*stoppers.front(), std::max(wait, std::min(look_time, longest_pause)));
    pause = pause == first_pause ? milliseconds(50) : milliseconds(100);
    const milliseconds look_begin = time.now();
    remains = look(true);
    look_time = time.now() - look_begin;
    send(sent);
  }
}

}  // namespace remote::agent
