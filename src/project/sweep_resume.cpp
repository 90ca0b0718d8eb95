// Going on with a sweep: what is missing of it, and a new run of its servers. docs/sweep.md tells the rules.

#include <algorithm>

#include <fmt/format.h>
#include <remote/history.hpp>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "jobs/launch_store.hpp"
#include "jobs/refresh.hpp"
#include "project/sweep_members.hpp"

namespace remote::project {
namespace {

// How the points that may have begun are, when nothing more begins: a start that did not get far never will.
std::vector<Job> settled(Core& core, const SweepView& view, std::vector<Job> points) {
  std::vector<Job> asked;
  std::vector<Job> others;
  for (Job& job : points) {
    if (!is_over(job) && job.point->waiting) {
      place_point(core, view, job);
    }
    const bool began = !job.point->waiting || view.began_on(job.id) != nullptr;
    if (began && job.point->waiting) {
      job.state = JobState::starting;
      job.point->waiting = false;
    }
    (began && !is_over(job) ? asked : others).push_back(job);
  }
  asked = jobs::refresh(core.site(), std::move(asked), ask_limit).jobs;
  others.insert(others.end(), asked.begin(), asked.end());
  std::ranges::sort(others, {}, [](const Job& job) { return job.point->number; });
  return others;
}

// Whether a point is to run (again), as it is now. Throws nothing.
bool is_missing(const SweepView& view, const Job& job, const ResumeRequest& request) {
  switch (job.state) {
    case JobState::succeeded:
    case JobState::running:
    case JobState::starting:
      return false;
    case JobState::failed:
      return request.failed;
    case JobState::killed:
    case JobState::lost:
      return !job.leftovers;
    case JobState::unknown:
      return request.unknown;
    case JobState::queued:
      break;
  }
  const std::string* given = view.given_to(job.id);
  return given == nullptr || view.answered(*given) || request.unknown;
}

// The job that a missing point is to be: the same one where it is certain that it never began.
Job next_job(const Core& core, const SweepView& view, const Job& job, const Member& first) {
  Job next = waiting_job(core, first, *job.launch);
  const std::string* given = view.given_to(job.id);
  if (job.state == JobState::queued && view.answered(given != nullptr ? *given : view.servers.front())) {
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

// The points as they are in this run.
struct Sorted {
  std::vector<Job> waiting{};  // missing, with their first ids
  std::vector<Job> again{};    // missing, with new ones
  std::vector<Job> running{};
  std::vector<std::string> ids{};

  std::vector<Job> missing() const {
    std::vector<Job> all = waiting;
    all.insert(all.end(), again.begin(), again.end());
    std::ranges::sort(all, {}, [](const Job& job) { return job.point->number; });
    return all;
  }
};

Sorted sort_points(const Core& core, const SweepView& view, const std::vector<Job>& points,
                   const ResumeRequest& request, const Member& first) {
  Sorted sorted;
  for (const Job& job : points) {
    const auto number = static_cast<std::size_t>(job.point->number);
    sorted.ids.resize(std::max(number + 1, sorted.ids.size()));
    if (is_missing(view, job, request)) {
      Job next = next_job(core, view, job, first);
      sorted.ids[number] = next.id.text();
      (next.id == job.id ? sorted.waiting : sorted.again).push_back(std::move(next));
    } else if (!is_final(job.state)) {
      sorted.running.push_back(job);
    }
  }
  if (sorted.again.empty() && sorted.waiting.empty()) {
    throw Error::usage("nothing of the sweep is missing",
                       sorted.running.empty()
                           ? "all of its points have ended"
                           : counted(sorted.running.size(), "point") + " still run, or are unknown")
        .mended_by(Remedy::rerun_failed);
  }
  return sorted;
}

// Ends what begins the points of the sweep, on all servers that answer. Throws Error where it cannot be known
// whether others begin.
SweepView stop_runners(Core& core, const std::vector<Job>& points, const ResumeRequest& request) {
  SweepView view = ask_sweep(core, jobs::SweepAsk::stop, points, core.cancel(),
                             std::chrono::ceil<std::chrono::seconds>(ask_limit));
  const std::string& first = view.servers.front();
  if (!view.answered(first) && !request.unknown) {
    throw Error("cannot go on with the sweep",
                first + " gives out its points and does not answer: it may be running them")
        .mended_by(Remedy::rerun_unknown)
        .on(first);
  }
  for (const Error& error : view.errors) {
    core.tell(SilentServer{error});
  }
  return view;
}

std::vector<Job> points_of(Core& core, const PastLaunch& record, const std::string& name) {
  std::vector<Job> all = stored_jobs(core);
  std::erase_if(all, [&](const Job& job) { return job.launch != record.id || !job.point; });
  if (all.empty()) {
    throw Error::usage(fmt::format("\'{}\' is no sweep", visible_line(name, 60)), "it is another launch")
        .mended_by(Remedy::list_jobs);
  }
  return sweep_results(all).points;
}

}  // namespace

SweepStarted resume_sweep(Core& core, const ResumeRequest& request) {
  const PastLaunch record = History(core.config.project).launch(request.launch);
  SweepStarted result{.launch = record.id, .jobs = {}, .servers = {}, .errors = {}};
  std::vector<Job> points = points_of(core, record, request.launch);
  const SweepView view = stop_runners(core, points, request);
  points = settled(core, view, std::move(points));
  std::vector<config::Server> servers;
  for (const std::string& name : view.servers) {
    if (view.answered(name)) {
      servers.push_back(core.one_server(name, "cannot go on with the sweep", "a sweep"));
    }
  }
  const std::vector<Member> members = ready_all(core, servers, std::nullopt, {}, result.errors);
  Sorted sorted = sort_points(core, view, points, request, members.front());
  jobs::SweepRun run = run_of(members);
  run.ids = sorted.ids;
  if (!sorted.again.empty()) {
    core.store.add(sorted.again);
  }
  result.jobs = sorted.missing();
  try {
    result.servers = begin_run(core, members, record.id, run, nullptr, sorted.running, result.errors);
  } catch (const servers::Refused& error) {
    give_up(core, sorted.again, error);
    throw Error(error).on(members.front().server.name);
  }
  if (const auto unsaved = jobs::save(core.store, sorted.waiting)) {
    core.tell(StoreProblem{unsaved->message()});
  }
  jobs::LaunchStore records(core.store);
  records.reopen(record.id);
  records.change(record.id, [&](PastLaunch& kept) {
    kept.jobs.insert(kept.jobs.end(), sorted.again.begin(), sorted.again.end());
    kept.ended_at.reset();
    // The first one gives out the points.
    std::vector<ServerSetup>& setups = kept.beginning.servers;
    std::stable_partition(setups.begin(), setups.end(),
                          [&](const ServerSetup& setup) { return setup.server == result.servers.front(); });
  });
  return result;
}

}  // namespace remote::project
