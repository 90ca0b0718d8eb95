// Continues a sweep: finds the missing points, and starts a new run on its servers. docs/sweep.md describes
// the rules.

#include <algorithm>
#include <iterator>

#include <remote/history.hpp>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "jobs/launch_store.hpp"
#include "jobs/refresh.hpp"
#include "jobs/start.hpp"
#include "project/sweep_members.hpp"
#include "servers/agent.hpp"

namespace remote::project {
namespace {

int point_number(const Job& job) {
  return job.point->number;
}

// The state of the points that may have started, once the runners are stopped: an incomplete start will not
// be completed.
std::vector<Job> settled(Core& core, const SweepView& view, std::vector<Job> points) {
  std::vector<Job> asked;
  std::vector<Job> others;
  for (Job& job : points) {
    if (!is_over(job) && job.point->waiting) {
      place_point(core, view, job);
      if (view.began(job.id)) {
        note_begun(job);
      }
    }
    (is_over(job) || job.point->waiting ? others : asked).push_back(job);
  }
  asked = jobs::refresh(core.site(), std::move(asked), ask_limit).jobs;
  others.insert(others.end(), asked.begin(), asked.end());
  std::ranges::sort(others, {}, point_number);
  return others;
}

// Whether a point must run (again), given its current state.
bool is_missing(const SweepView& view, const Job& job, const ResumeRequest& request) {
  switch (job.state) {
    case JobState::succeeded:
    case JobState::running:
    case JobState::starting:
      return false;
    case JobState::failed:
      return request.failed || !job.pid;  // without a process it never ran: the server's disk was full
    case JobState::killed:
    case JobState::lost:
      return !job.leftovers;
    case JobState::unknown:
      return request.unknown;
    case JobState::queued:
      break;
  }
  return request.unknown || view.answered(view.owner(job.id));
}

// The job for a missing point: the same job if it certainly never started, otherwise a new one.
Job next_job(const Core& core, const SweepView& view, const Job& job, const Member& first) {
  Job next = waiting_job(core, first, *job.launch);
  if (job.state == JobState::queued && view.answered(view.owner(job.id))) {
    next.id = job.id;
    next.key = job.key;
    next.created_at = job.created_at;
    next.checked_at = now_seconds();
  }
  next.command = job.command;
  next.tags = job.tags;
  next.hidden = job.hidden;
  next.point = SweepPoint{.number = job.point->number, .values = job.point->values, .waiting = true};
  return next;
}

// Stops the runners that start the sweep's points, on all servers that answer. Throws Error if it is unknown
// whether a server still hands out points.
SweepView stop_runners(Core& core, const std::vector<Job>& points, const ResumeRequest& request) {
  SweepView view = ask_sweep(core, jobs::SweepAsk::stop, points, core.cancel(),
                             std::chrono::ceil<std::chrono::seconds>(ask_limit));
  const std::string& first = view.servers.front();
  if (!view.answered(first) && !request.unknown) {
    throw Error("cannot resume the sweep",
                first + " gives out its points and does not answer: it may be running them")
        .mended_by(Remedy::rerun_unknown)
        .on(first);
  }
  if (!view.errors.empty()) {
    core.tell(SilentServers{view.errors});
  }
  return view;
}

Error nothing_missing(const std::vector<Job>& points, std::size_t running) {
  const bool failed = std::ranges::find(points, JobState::failed, &Job::state) != points.end();
  return Error::usage("the sweep has no missing points",
                      running == 0 ? "all of its points have ended"
                                   : counted(running, "point") + " still run, or are unknown")
      .mended_by(failed ? Remedy::rerun_failed : Remedy::none);
}

// Reopens the record of the sweep and adds the new jobs. Its first server hands out the points.
void reopen_record(Core& core, const SweepStarted& started, const std::vector<Job>& added) {
  jobs::LaunchStore records(core.store);
  records.reopen(started.launch);
  records.change(started.launch, [&](PastLaunch& kept) {
    kept.jobs.insert(kept.jobs.end(), added.begin(), added.end());
    kept.ended_at.reset();
    std::vector<ServerSetup>& setups = kept.beginning.servers;
    std::stable_partition(setups.begin(), setups.end(),
                          [&](const ServerSetup& setup) { return setup.server == started.servers.front(); });
  });
}

}  // namespace

SweepStarted resume_sweep(Core& core, const ResumeRequest& request) {
  std::vector<Job> points = recorded_points(core, request.launch);
  if (points.front().backend == jobs::slurm_backend) {
    throw Error::usage("cannot resume the sweep", "it is an array of Slurm, and tasks cannot be added to it",
                       "start a new sweep of the missing points");
  }
  SweepStarted result{.launch = *points.front().launch, .jobs = {}, .servers = {}, .errors = {}};
  const SweepView view = stop_runners(core, points, request);
  points = settled(core, view, std::move(points));
  std::vector<config::Server> servers;
  for (const std::string& name : view.servers) {
    if (view.answered(name)) {
      servers.push_back(core.one_server(name, "cannot resume the sweep", "a sweep"));
    }
  }
  const std::vector<Member> members = ready_all(core, servers, std::nullopt, {}, result.errors);
  jobs::SweepRun run = run_of(members, result.launch);
  run.ids.resize(static_cast<std::size_t>(points.back().point->number) + 1);
  std::vector<Job> waiting;  // missing, keep their ids
  std::vector<Job> again;    // missing, get new ids
  std::vector<Job> running;
  for (const Job& job : points) {
    if (is_missing(view, job, request)) {
      Job next = next_job(core, view, job, members.front());
      run.ids[static_cast<std::size_t>(job.point->number)] = next.id.text();
      (next.id == job.id ? waiting : again).push_back(std::move(next));
    } else if (!is_final(job.state)) {
      running.push_back(job);
    }
  }
  if (again.empty() && waiting.empty()) {
    throw nothing_missing(points, running.size());
  }
  if (!again.empty()) {
    jobs::add_new(core.config, core.store, again);
  }
  std::ranges::merge(waiting, again, std::back_inserter(result.jobs), {}, point_number, point_number);
  try {
    result.servers = begin_run(core, members, run, nullptr, running, result.errors);
  } catch (const servers::Refused& error) {
    give_up(core, again, error);
    throw Error(error).on(members.front().server.name);
  }
  save_points(core, waiting);
  reopen_record(core, result, again);
  return result;
}

}  // namespace remote::project
