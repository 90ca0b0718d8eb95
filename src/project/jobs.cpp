// The list of jobs: their state here and on the servers, killing and removing them, and copying their output.

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "base/files.hpp"
#include "base/log.hpp"
#include "base/paths.hpp"
#include "base/ranges.hpp"
#include "base/strings.hpp"
#include "config/folder_id.hpp"
#include "jobs/ask.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/kill.hpp"
#include "jobs/refresh.hpp"
#include "jobs/select.hpp"
#include "jobs/stacks.hpp"
#include "jobs/why.hpp"
#include "project/check/judge.hpp"
#include "project/core.hpp"
#include "project/history.hpp"
#include "project/logs_before.hpp"
#include "project/sweep.hpp"
#include "servers/sync.hpp"

namespace remote::project {
namespace {

// Marks the jobs that were started from another folder.
void mark_copied(const config::Config& config, std::vector<Job>& jobs) {
  if (std::ranges::none_of(jobs, [](const Job& job) { return job.made_in.has_value(); })) {
    return;
  }
  const std::string own = config::find_folder_id(config);
  for (Job& job : jobs) {
    job.elsewhere = job.made_in && !own.empty() && job.made_in->text() != own;
  }
}

}  // namespace

std::vector<Job> stored_jobs(Core& core, const jobs::Store::Filter& filter) {
  adopt_labml_jobs(core);
  jobs::Store::Listing listing = core.store.list(filter);
  for (const std::string& problem : listing.problems) {
    core.tell(StoreProblem{problem});
  }
  mark_copied(core.config, listing.jobs);
  return std::move(listing.jobs);
}

bool has_record(const Core& core, const std::string& id) {
  const auto parsed = JobId::parse(id);
  return parsed && is_there(core.store.record_file(*parsed));
}

std::set<std::string> find_own_jobs(const Core& core) {
  std::vector<Job> jobs = core.store.list().jobs;
  mark_copied(core.config, jobs);
  std::set<std::string> ids;
  for (const Job& job : jobs) {
    if (!job.elsewhere) {
      ids.insert(job.id.text());
    }
  }
  return ids;
}

std::size_t count_unrecorded(const Core& core, const std::vector<std::string>& ids) {
  return static_cast<std::size_t>(
      std::ranges::count_if(ids, [&](const std::string& id) { return !has_record(core, id); }));
}

namespace {

// Collects the numbers printed by points that have just ended.
void measure_ended(Core& core, const std::vector<Job>& before, std::vector<Job>& now) {
  std::vector<Job> ended;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i].point && is_final(now[i].state) && !is_final(before[i].state)) {
      ended.push_back(now[i]);
    }
  }
  if (!ended.empty()) {
    measure_points(core, ended);
    for (Job& job : now) {
      const auto measured = std::ranges::find(ended, job.id, &Job::id);
      job = measured == ended.end() ? job : *measured;
    }
  }
}

}  // namespace

std::vector<Job> refresh(Core& core, std::vector<Job> jobs, std::chrono::milliseconds patience) {
  if (jobs.empty()) {
    return jobs;
  }
  const std::vector<Job> waiting = take_waiting_points(core, jobs, patience);
  const std::vector<Job> before = jobs;
  jobs::News news = jobs::refresh(core.site(), std::move(jobs), patience);
  if (!news.silent.empty()) {
    core.tell(SilentServers{news.silent});
  }
  if (news.unsaved) {
    core.tell(StoreProblem{news.unsaved->message()});
  }
  measure_ended(core, before, news.jobs);
  news.jobs.insert(news.jobs.end(), waiting.begin(), waiting.end());
  if (!waiting.empty()) {
    std::ranges::stable_sort(news.jobs, {}, &Job::key);
  }
  return std::move(news.jobs);
}

std::vector<Job> list(Core& core, const JobsRequest& request) {
  const JobSelection& named = request.selection;
  jobs::Store::Filter filter{.unfinished_only = request.unfinished_only, .hidden = named.hidden};
  if (named.names.empty() && named.launches.empty() && named.tags.empty()) {
    filter.lately = request.lately;
  }
  const std::vector<Job> stored = stored_jobs(core, filter);
  const JobSelection selection = with_ids(core, stored, named);
  std::vector<Job> chosen;
  try {
    chosen = jobs::select(stored, selection);
    if (chosen.empty() && request.some) {
      throw jobs::nothing_selected(stored, selection);
    }
  } catch (const Error& error) {
    throw no_such_jobs(core, stored, named, error);
  }
  if (!request.ask) {
    return chosen;
  }
  chosen = refresh(core, std::move(chosen), request.patience);
  tell_missing_lifelines(core, chosen);
  complete_records(core);
  return chosen;
}

bool lacks_lifeline(const Job& job) {
  return job.reason.kind == JobReason::Kind::no_lifeline;
}

bool tell_missing_lifelines(Core& core, const std::vector<Job>& jobs) {
  using Kind = JobReason::Kind;
  using Cause = NoLifeline::Cause;
  constexpr std::array causes{std::pair(Kind::no_lifeline, Cause::no_connection),
                              std::pair(Kind::lifeline_dead, Cause::dead),
                              std::pair(Kind::lifeline_restarted, Cause::restarted)};
  std::set<std::pair<JobId, std::string>> told;
  std::set<JobId> dead;  // launches with a dead lifeline, which its other servers have lost
  for (const Job& job : jobs) {
    if (job.launch &&
        (job.reason.kind == Kind::lifeline_dead || job.reason.kind == Kind::lifeline_restarted)) {
      dead.insert(*job.launch);
    }
  }
  NoLifeline event;
  for (const Job& job : jobs) {
    const auto cause = std::ranges::find(causes, job.reason.kind, &std::pair<Kind, Cause>::first);
    if (job.state == JobState::running && job.launch && cause != causes.end() &&
        !(cause->second == Cause::no_connection && dead.contains(*job.launch)) &&
        told.emplace(*job.launch, job.server).second) {
      event.servers.push_back({job.server, cause->second, job.reason.text});
    }
  }
  if (!event.servers.empty()) {
    core.tell(event);
  }
  return !event.servers.empty();
}

std::string user_at_host() {
  return local_user() + "@" + local_host();
}

KillResult kill(Core& core, const std::vector<Job>& jobs, const KillRequest& request, const Cancel& cancel,
                ssh::ConnectLimit limit) {
  KillRequest full = request;
  if (full.by == JobReason{.kind = JobReason::Kind::by_user}) {
    full.by.text = user_at_host();
  }
  std::optional<Error> unsaved;
  std::vector<Job> begun = jobs;
  KillResult waiting;
  stop_sweeps(core, begun, full, cancel, limit, waiting);
  jobs::Site site = core.site();
  site.cancel = cancel;
  KillResult result = jobs::kill(site, begun, full, limit, &unsaved);
  std::ranges::move(waiting.entries, std::back_inserter(result.entries));
  std::ranges::stable_sort(result.entries, {}, [](const KillResult::Entry& entry) { return entry.job.key; });
  for (const Error& error : waiting.errors) {
    if (std::ranges::find(result.errors, error.server(), &Error::server) == result.errors.end()) {
      result.errors.push_back(error);
    }
  }
  if (unsaved) {
    core.tell(StoreProblem{unsaved->message()});
  }
  if (!cancel.cancelled()) {
    complete_records(core);
  }
  return result;
}

namespace {

StacksResult stacks(Core& core, const std::vector<Job>& jobs) {
  return jobs::read_stacks(core.site(), jobs);
}

CleanResult clean(Core& core, const std::vector<Job>& jobs) {
  complete_records(core);  // while the last output of the jobs still exists
  CleanResult result = jobs::clean(core.site(), jobs);
  drop_sweeps(core, jobs);
  return result;
}

// Whether the job was removed here while its output was being copied. If so, removes the copy too.
bool was_removed(const Core& core, const Job& job) {
  std::error_code ignored;
  if (is_there(core.store.record_file(job.id))) {
    return false;
  }
  const std::filesystem::path folder = core.store.job_folder(job.id);
  for (const char* name : {"job.out", "job.err", "complete"}) {
    std::filesystem::remove(folder / name, ignored);
  }
  std::filesystem::remove(folder, ignored);  // fails if other files are in it, as intended
  return true;
}

// The jobs on a server, by whether their logs fit on this machine's disk.
struct FittingLogs {
  std::vector<Job> jobs;
  std::vector<int> refused;          // keys
  std::uintmax_t refused_bytes = 0;  // of the largest one
};

FittingLogs choose_fitting(ssh::Connection& connection, const jobs::JobsAt& place, const LogsBefore& before,
                           FreeSpace& space, const Cancel& cancel) {
  jobs::StateAnswer answer;
  try {
    answer = jobs::ask_state({connection, cancel}, {.folder = place.folder, .ids = place.ids()});
  } catch (const Error& error) {  // the sizes are unknown
    log_info(place.server, "{}", error.message());
  }
  FittingLogs fitting;
  for (const Job& job : place.jobs) {
    const wire::JobReport* report = answer.find(job.id);
    const std::uintmax_t bytes =
        report == nullptr ? 0 : before.count_missing(job.id, report->out_size, report->err_size);
    if (space.reserve(bytes)) {
      fitting.jobs.push_back(job);
    } else {
      fitting.refused.push_back(job.key);
      fitting.refused_bytes = std::max(fitting.refused_bytes, bytes);
    }
  }
  return fitting;
}

Error refuse(const FittingLogs& fitting, const FreeSpace& space) {
  const bool is_one = fitting.refused.size() == 1;
  return Error(
             fmt::format("cannot copy the output of {} {}", is_one ? "job" : "jobs", ranges(fitting.refused)),
             fmt::format("{}{} needed, but only {} are free on this machine",
                         size_text(fitting.refused_bytes), is_one ? " are" : " for the largest are",
                         size_text(space.left())),
             "free some space on this machine's disk, or name other jobs")
      .because(Cause::disk_full);
}

}  // namespace

std::vector<Error> fetch_logs(Core& core, const std::vector<Job>& jobs) {
  // Logs that were copied when all processes of the job were gone are complete: nothing can change them.
  const auto complete = [&](const Job& job) { return core.store.job_folder(job.id) / "complete"; };
  std::vector<Job> wanted;
  std::ranges::copy_if(jobs, std::back_inserter(wanted),
                       [&](const Job& job) { return !is_over(job) || !read_file_if_there(complete(job)); });
  struct Brought {
    Job job;
  };
  std::vector<Error> errors;
  std::vector<Error> refused;
  std::mutex refused_mutex;
  FreeSpace space(core.store.folder());
  const auto brought = jobs::on_job_servers(
      core.site(), wanted, errors, [&](ssh::Connection& connection, const jobs::JobsAt& place) {
        servers::PullOptions options;
        options.append = true;
        options.pipe_program = core.hooks.rsync_helper;
        options.links = false;  // outputs are files; a link could make this machine read or write elsewhere
        const LogsBefore before(core.store, place.ids());
        const FittingLogs fitting = choose_fitting(connection, place, before, space, core.cancel());
        if (!fitting.refused.empty()) {
          const std::lock_guard lock(refused_mutex);
          refused.push_back(refuse(fitting, space).on(place.server));
        }
        if (fitting.jobs.empty()) {
          return std::vector<Brought>();
        }
        for (const Job& job : fitting.jobs) {
          options.filters.push_back(fmt::format("+ /{}/", job.id.text()));
        }
        options.filters.insert(options.filters.end(), {"+ job.out", "+ job.err", "- *"});
        try {
          servers::sync_from(connection, {place.folder.project + "/" + place.folder.jobs_folder + "/"},
                             core.store.folder(), options, core.cancel());
        } catch (const Error& error) {
          if (error.cause() == Cause::disk_full) {
            before.restore();
          }
          throw;
        }
        std::vector<Brought> all;
        for (const Job& job : fitting.jobs) {
          all.push_back({job});
        }
        return all;
      });
  std::ranges::move(refused, std::back_inserter(errors));
  for (const Brought& one : brought) {
    if (was_removed(core, one.job)) {
      continue;
    }
    // A lost job may be found again, and leftover processes may still write.
    if (!is_over(one.job)) {
      remove_file(complete(one.job));
    } else if (one.job.state != JobState::lost && is_there(core.store.job_folder(one.job.id) / "job.out")) {
      try {
        write_file_atomic(complete(one.job), "");
      } catch (const Error&) {
        if (!was_removed(core, one.job)) {
          throw;
        }
      }
    }
  }
  return errors;
}

}  // namespace remote::project

namespace remote {

std::vector<Job> Project::jobs(const JobsRequest& request, const std::optional<Cancel>& cancel) {
  return project::call_here(*state_, cancel,
                            [&](project::Core& core) { return project::list(core, request); });
}

std::vector<Job> Project::refresh(std::vector<Job> jobs, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::refresh(core, std::move(jobs)); });
}

std::vector<Job> Project::with_launch(const std::vector<Job>& jobs) {
  std::vector<Job> all =
      project::call_here(*state_, {}, [](project::Core& core) { return project::stored_jobs(core); });
  std::erase_if(all, [&](const Job& job) {
    return std::none_of(jobs.begin(), jobs.end(), [&](const Job& one) {
      return job.id == one.id || (one.launch && job.launch == one.launch);
    });
  });
  return all;
}

Job Project::newest_master(const std::vector<std::string>& tags) {
  return project::call_here(*state_, {}, [&](project::Core& core) {
    return jobs::default_to_follow(project::stored_jobs(core), tags);
  });
}

KillResult Project::kill(const std::vector<Job>& jobs, const KillRequest& request,
                         const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel, [&](project::Core& core) {
    return project::kill(core, jobs, request, core.cancel());
  });
}

StacksResult Project::stacks(const std::vector<Job>& jobs, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::stacks(core, jobs); });
}

Why Project::why(const std::vector<Job>& jobs, const WhyRequest& request,
                 const std::optional<Cancel>& cancel) {
  std::vector<Job> members;
  std::ranges::copy_if(jobs, std::back_inserter(members), std::not_fn(is_idle));
  return project::call_servers(*state_, cancel, [&](project::Core& core) {
    return request.kept ? jobs::look_kept(core.site(), members)
                        : jobs::look_why(core.site(), members, request);
  });
}

std::vector<Error> Project::fetch_logs(const std::vector<Job>& jobs, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::fetch_logs(core, jobs); });
}

void Project::forget(const std::vector<Job>& jobs) {
  project::call_here(*state_, {}, [&](project::Core& core) {
    std::vector<JobId> ids;
    std::ranges::transform(jobs, std::back_inserter(ids), &Job::id);
    core.store.remove(ids);
  });
}

CleanResult Project::clean(const std::vector<Job>& jobs, const std::optional<Cancel>& cancel) {
  return project::call_servers(*state_, cancel,
                               [&](project::Core& core) { return project::clean(core, jobs); });
}

}  // namespace remote
