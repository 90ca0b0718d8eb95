// Asks the servers of a sweep about its points, and stops a sweep.

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <remote/history.hpp>

#include "base/clock.hpp"
#include "base/group_by.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "jobs/backend_names.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/launch_store.hpp"
#include "jobs/refresh.hpp"
#include "jobs/transitions.hpp"
#include "project/report/numbers.hpp"
#include "project/sweep.hpp"
#include "servers/fanout.hpp"

namespace remote::project {
namespace {

const config::Server& server_named(const Core& core, const std::string& name) {
  const auto found = std::ranges::find(core.config.servers, name, &config::Server::name);
  if (found == core.config.servers.end()) {
    throw Error("cannot ask about the sweep", fmt::format("configs.yaml no longer has server '{}'", name),
                "put the server back into configs.yaml to reach its points")
        .on(name);
  }
  return *found;
}

// Sends the question to a server, and returns the answer.
jobs::SweepAnswer ask_server(Core& core, const std::string& name, const jobs::SweepQuestion& question,
                             const Cancel& cancel, ssh::ConnectLimit limit) {
  const config::Server& server = server_named(core, name);
  const auto connection = core.connector().connect(server, cancel, limit);
  return jobs::ask_sweep({*connection, cancel}, jobs::remote_folder_for(core.config, server), question);
}

std::vector<JobId> waiting_ids(const std::vector<Job>& points) {
  std::vector<JobId> ids;
  for (const Job& job : points) {
    if (job.point->waiting) {
      ids.push_back(job.id);
    }
  }
  return ids;
}

// The points among these jobs, by sweep. Without Slurm arrays, whose tasks are queried like normal jobs.
std::vector<Group<JobId>> by_sweep(const std::vector<Job>& jobs, bool waiting_only) {
  return group_by(jobs, [&](const Job& job) {
    return job.point && job.launch && job.backend != jobs::slurm_backend &&
                   (!waiting_only || waits_for_turn(job))
               ? job.launch
               : std::optional<JobId>();
  });
}

std::vector<Job> chosen(const std::vector<Job>& jobs, const std::vector<std::size_t>& indices) {
  std::vector<Job> some;
  std::ranges::transform(indices, std::back_inserter(some), [&](std::size_t i) { return jobs[i]; });
  return some;
}

// Reports problems of a sweep with waiting points.
void tell_trouble(Core& core, const SweepView& view) {
  using jobs::SweepRunner;
  using Cause = SweepTrouble::Cause;
  for (const auto& [name, answer] : view.answers) {
    const bool gives = name == view.servers.front();
    if (gives && answer.runner != SweepRunner::alive) {
      const Cause cause = answer.runner == SweepRunner::stopped ? Cause::stopped
                          : answer.runner == SweepRunner::none  ? Cause::gone
                                                                : Cause::dead;
      core.tell(SweepTrouble{view.key, name, cause, "", true});
    } else if (!answer.note.empty()) {
      core.tell(SweepTrouble{view.key, name, Cause::says, answer.note, false});
    } else if (answer.runner == SweepRunner::dead) {
      core.tell(SweepTrouble{view.key, name, Cause::dead, "", false});
    }
  }
}

}  // namespace

bool SweepView::began(const JobId& id) const {
  const auto found = places.find(id);
  return found != places.end() && found->second.began;
}

const std::string& SweepView::owner(const JobId& id) const {
  const auto found = places.find(id);
  return found == places.end() ? servers.front() : found->second.server;
}

namespace {

// The participating servers and the key of the sweep of these jobs.
SweepView sweep_of(const Core& core, const std::vector<Job>& points) {
  SweepView view;
  try {
    if (const auto record = jobs::LaunchStore(core.store).read(*points.front().launch)) {
      view.servers = record->servers;
      view.key = record->first_key;
    }
  } catch (const Error& error) {
    log_info("", "{}", error.message());
  }
  if (view.servers.empty()) {  // its record was removed
    view.key = points.front().key;
    for (const Job& job : points) {
      if (std::ranges::find(view.servers, job.server) == view.servers.end()) {
        view.servers.push_back(job.server);
      }
    }
  }
  return view;
}

void find_places(SweepView& view) {
  // The first server hands out the points now, but another one may have done so before.
  for (const std::string& name : view.servers) {
    const auto answer = view.answers.find(name);
    if (answer == view.answers.end()) {
      continue;
    }
    for (const auto& [id, server] : answer->second.given) {
      if (std::ranges::find(view.servers, server) != view.servers.end()) {
        view.places.try_emplace(id, SweepView::Place{server});
      }
    }
  }
  for (const auto& [name, answer] : view.answers) {
    for (const JobId& id : answer.begun) {
      view.places[id] = {name, true};
    }
  }
}

}  // namespace

SweepView ask_sweep(Core& core, jobs::SweepAsk ask, const std::vector<Job>& points, const Cancel& cancel,
                    ssh::ConnectLimit limit) {
  SweepView view = sweep_of(core, points);
  const jobs::SweepQuestion question{ask, *points.front().launch, waiting_ids(points)};
  const auto outcomes = servers::fan_out(
      view.servers, std::identity(),
      [&](const std::string& name, std::size_t) { return ask_server(core, name, question, cancel, limit); });
  for (std::size_t i = 0; i < view.servers.size(); ++i) {
    if (outcomes[i].ok()) {
      view.answers.emplace(view.servers[i], *outcomes[i].value);
    } else {
      view.errors.push_back(*outcomes[i].error);
    }
  }
  find_places(view);
  return view;
}

void place_point(const Core& core, const SweepView& view, Job& point) {
  const auto place = view.places.find(point.id);
  if (place != view.places.end() && place->second.server != point.server) {
    point.server = place->second.server;
    point.remote_folder = jobs::remote_folder_for(core.config, server_named(core, point.server));
  }
}

void save_points(Core& core, const std::vector<Job>& points) {
  if (const auto unsaved = jobs::save(core.store, points)) {
    core.tell(StoreProblem{unsaved->message()});
  }
}

void note_begun(Job& point) {
  point.state = JobState::starting;
  point.point->waiting = false;
}

std::vector<Job> recorded_points(Core& core, const std::string& launch) {
  const JobId id = History(core.config.project).launch(launch).id;
  std::vector<Job> all = stored_jobs(core);
  std::erase_if(all, [&](const Job& job) { return job.launch != id || !job.point; });
  if (all.empty()) {
    throw Error::usage(fmt::format("'{}' is not a sweep", visible_line(launch, 60)), "it is another launch")
        .mended_by(Remedy::list_jobs);
  }
  return sweep_results(all).points;
}

std::vector<Job> take_waiting_points(Core& core, std::vector<Job>& jobs, std::chrono::milliseconds patience) {
  std::vector<Job> aside;
  std::set<JobId> apart;
  std::vector<Job> placed;
  for (const auto& [launch, indices] : by_sweep(jobs, true)) {
    const SweepView view = ask_sweep(core, jobs::SweepAsk::look, chosen(jobs, indices), core.cancel(),
                                     std::chrono::ceil<std::chrono::seconds>(patience));
    bool waits = false;
    for (const std::size_t i : indices) {
      Job& job = jobs[i];
      const std::string before = job.server;
      place_point(core, view, job);
      if (job.server != before) {
        placed.push_back(job);
      }
      const bool known = view.answered(job.server);
      if (!view.began(job.id)) {
        waits = waits || known;
        apart.insert(job.id);
        aside.push_back(known ? job : jobs::as_unanswered(job, now_seconds()));
      }
    }
    if (waits) {
      tell_trouble(core, view);
    }
    if (!view.errors.empty()) {
      core.tell(SilentServers{view.errors});
    }
  }
  std::erase_if(jobs, [&](const Job& job) { return apart.contains(job.id); });
  save_points(core, placed);
  return aside;
}

void place_waiting_points(Core& core, std::vector<Job>& jobs, const Cancel& cancel, ssh::ConnectLimit limit) {
  std::vector<Job> placed;
  for (const auto& [launch, indices] : by_sweep(jobs, true)) {
    const SweepView view = ask_sweep(core, jobs::SweepAsk::look, chosen(jobs, indices), cancel, limit);
    for (const std::size_t i : indices) {
      const std::string before = jobs[i].server;
      place_point(core, view, jobs[i]);
      if (jobs[i].server != before) {
        placed.push_back(jobs[i]);
      }
    }
  }
  if (const auto unsaved = jobs::save(core.store, placed)) {
    log_info("", "{}", unsaved->message());
  }
}

void measure_points(Core& core, std::vector<Job>& jobs) {
  const auto groups = group_by(jobs, [](const Job& job) {
    const bool wanted = job.point && job.launch && !job.point->waiting && job.point->numbers.empty() &&
                        (job.state == JobState::succeeded || job.state == JobState::failed);
    return wanted ? std::optional(std::pair(*job.launch, job.server))
                  : std::optional<std::pair<JobId, std::string>>();
  });
  const auto outcomes = servers::fan_out(
      groups, [](const auto& group) { return group.key.second; },
      [&](const auto& group, std::size_t) {
        jobs::SweepQuestion question{.launch = group.key.first};
        for (const std::size_t i : group.indices) {
          question.tails.push_back(jobs[i].id);
        }
        return ask_server(core, group.key.second, question, core.cancel(),
                          std::chrono::ceil<std::chrono::seconds>(ask_limit));
      });
  std::vector<Job> measured;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto tails = outcomes[g].ok() ? outcomes[g].value->tails : decltype(jobs::SweepAnswer::tails)();
    for (const std::size_t i : groups[g].indices) {
      if (const auto tail = tails.find(jobs[i].id); tail != tails.end()) {
        for (const std::string& line : tail->second) {
          take_numbers(line, jobs[i].point->numbers);
        }
        measured.push_back(jobs[i]);
      }
    }
  }
  save_points(core, measured);
}

namespace {

// Marks a waiting point of a stopped sweep as killed. Returns why that is not possible; "" if it will never
// start.
std::string end_waiting(const SweepView& view, Job& job, const KillRequest& request) {
  if (const std::string& owner = view.owner(job.id); !view.answered(owner)) {
    return owner + " does not answer, and may begin it";
  }
  job.point->waiting = false;
  job.state = JobState::killed;
  job.reason = request.by;
  job.reason.number = request.signal;
  job.ended_at = job.checked_at = now_seconds();
  return "";
}

}  // namespace

void stop_sweeps(Core& core, std::vector<Job>& jobs, const KillRequest& request, const Cancel& cancel,
                 ssh::ConnectLimit limit, KillResult& result) {
  const auto sweeps = by_sweep(jobs, false);
  if (sweeps.empty()) {
    return;
  }
  std::set<JobId> apart;
  for (const auto& [launch, indices] : sweeps) {
    const std::vector<Job> all = stored_jobs(core, {.unfinished_only = true});
    const bool whole = std::ranges::none_of(all, [&, &launch = launch](const Job& job) {
      return job.launch == launch && std::ranges::find(jobs, job.id, &Job::id) == jobs.end();
    });
    const std::vector<Job> points = chosen(jobs, indices);
    const SweepView view = whole ? ask_sweep(core, jobs::SweepAsk::stop, points, cancel, limit) : SweepView();
    result.errors.insert(result.errors.end(), view.errors.begin(), view.errors.end());
    for (const std::size_t i : indices) {
      Job& job = jobs[i];
      if (is_over(job)) {
        apart.insert(job.id);  // a sweep may have thousands, most of which have ended
      } else if (job.point->waiting) {
        place_point(core, view, job);
        if (view.began(job.id)) {
          note_begun(job);  // a start in progress is cancelled
          continue;
        }
        const std::string refusal = whole ? end_waiting(view, job, request)
                                          : "it waits for its turn, and a sweep is stopped as a whole";
        using Outcome = KillResult::Entry::Outcome;
        result.entries.push_back(
            {job, refusal.empty() ? Outcome::none : Outcome::refused, 0, {}, refusal, {}});
        apart.insert(job.id);
      }
    }
  }
  std::erase_if(jobs, [&](const Job& job) { return apart.contains(job.id); });
  std::vector<Job> ended;
  std::ranges::transform(result.entries, std::back_inserter(ended), &KillResult::Entry::job);
  save_points(core, ended);
}

void drop_sweeps(Core& core, const std::vector<Job>& jobs) {
  const std::vector<Job> left = core.store.list().jobs;
  for (const auto& [launch, indices] : by_sweep(jobs, false)) {
    if (std::ranges::find(left, std::optional(launch), &Job::launch) == left.end()) {
      const SweepView view = ask_sweep(core, jobs::SweepAsk::drop, chosen(jobs, indices), core.cancel(),
                                       std::chrono::ceil<std::chrono::seconds>(ask_limit));
      for (const Error& error : view.errors) {
        log_info("", "{}", error.message());  // some files remain there, which are harmless
      }
    }
  }
}

}  // namespace remote::project
