#include "project/history.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <remote/sweep.hpp>
#include <remote/verdict.hpp>
#include <remote/version.hpp>

#include "base/clock.hpp"
#include "base/command.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "config/history.hpp"
#include "config/trust.hpp"
#include "config/validate.hpp"
#include "jobs/job_servers.hpp"
#include "jobs/launch_store.hpp"
#include "jobs/verdict.hpp"
#include "project/past_code.hpp"
#include "project/rank_lines.hpp"
#include "project/report/numbers.hpp"
#include "project/server_setup.hpp"
#include "project/sweep.hpp"
#include "servers/fanout.hpp"
#include "servers/sent_state.hpp"

namespace remote::project {
namespace {

constexpr std::chrono::hours a_week{7 * 24};
constexpr std::chrono::minutes a_minute{1};
constexpr std::size_t most_of_name = 100;
constexpr std::size_t longest_note = 10000;

// The names of the variables that the launch and configs.yaml set.
std::vector<std::string> given_variables(const config::Config& config, const LaunchRequest& request,
                                         const std::vector<ServerSetup>& servers) {
  std::set<std::string> names;
  for (const auto& [name, value] : request.env) {
    names.insert(name);
  }
  for (const config::Server& server : config.servers) {
    if (std::ranges::find(servers, server.name, &ServerSetup::server) != servers.end()) {
      for (const auto& [name, value] : server.env) {
        names.insert(name);
      }
    }
  }
  return {names.begin(), names.end()};
}

// The last numbers printed by the first and by the last rank, because some programs print on the last one. If
// a server does not answer, its numbers are missing and `whole` becomes false.
std::vector<NamedNumber> last_numbers(Core& core, const std::vector<Job>& jobs, bool& whole) {
  constexpr int most_lines = 400;
  std::vector<Job> asked{jobs.back()};
  if (jobs.size() > 1) {
    asked.push_back(jobs.front());
  }
  const auto places = jobs::by_job_folder(asked);
  const auto outcomes =
      servers::fan_out(places, &jobs::JobsAt::server, [&](const jobs::JobsAt& at, std::size_t) {
        const auto connection =
            core.connector().connect(jobs::server_of(core.config, at.jobs.front()), core.cancel(),
                                     std::chrono::ceil<std::chrono::seconds>(ask_limit));
        // Under Slurm each rank has separate output files.
        return jobs::last_lines({*connection, core.cancel()}, at.jobs, most_lines,
                                {"ranks/0.err", "job.err", "ranks/0.out", "job.out"});
      });
  std::vector<NamedNumber> numbers;
  for (std::size_t i = 0; i < places.size(); ++i) {
    whole = whole && outcomes[i].ok();
    for (std::string_view line : outcomes[i].ok() ? *outcomes[i].value : std::vector<std::string>()) {
      if (places[i].jobs.front().labelled) {
        take_label(line);
      }
      take_numbers(line, numbers);
    }
  }
  return numbers;
}

std::vector<NamedNumber> best_numbers(const std::vector<Job>& jobs) {
  const SweepResults results = sweep_results(jobs);
  return results.best ? results.points[*results.best].point->numbers : std::vector<NamedNumber>();
}

void complete(Core& core, jobs::LaunchStore& records, const JobId& id, const std::optional<Verdict>& known) {
  const auto before = records.read(id);
  if (!before) {
    records.close(id);
    return;
  }
  PastLaunch now = *before;
  records.update(now);
  for (Job& job : now.jobs) {
    if (!is_final(job.state) && !records.is_stored(job.id)) {
      job.state = JobState::lost;
      job.reason = {.kind = JobReason::Kind::other, .text = "its record was removed"};
    }
  }
  if (now.jobs.empty() && core.store.starter_is_dead(id) && now.began_at < now_seconds() - a_minute) {
    records.remove(id);  // it never started anything
    return;
  }
  if (now.jobs.empty() || !std::ranges::all_of(now.jobs, is_final, &Job::state)) {
    if (before->ended_at) {  // a lost job was found again, and is running
      records.change(id, [&](PastLaunch& record) {
        record.jobs = now.jobs;
        record.ended_at.reset();
      });
    }
    return;
  }
  now.ended_at = end_of(std::ranges::max(now.jobs, {}, end_of));
  bool whole = true;
  if (now.jobs != before->jobs || !before->ended_at || records.tried(id)) {
    const bool told = known && known->first && known->first->launch == id;
    const Verdict verdict = told ? *known : judge(core, now.jobs, {});
    measure_points(core, now.jobs);  // the program that followed them may have been interrupted
    const std::vector<NamedNumber> numbers =
        now.jobs.front().point ? best_numbers(now.jobs) : last_numbers(core, now.jobs, whole);
    records.change(id, [&](PastLaunch& record) {
      record.jobs = now.jobs;
      record.ended_at = now.ended_at;
      record.last_lines = verdict.last_lines.empty() ? record.last_lines : verdict.last_lines;
      record.gone = verdict.gone;
      record.numbers = numbers.empty() ? record.numbers : numbers;
    });
  }
  if (now.news == "pending") {
    now.news = news_of(core, now);
    records.change(id, [&](PastLaunch& record) { record.news = now.news; });
  }
  if (now.news == "pending" || (!whole && records.may_try_again(id))) {
    return;  // retried next time
  }
  // A lost job may still be found again.
  if (std::ranges::find(now.jobs, JobState::lost, &Job::state) == now.jobs.end() ||
      *now.ended_at < now_seconds() - a_week) {
    records.close(id);
  }
}

bool fits(const LaunchSummary& launch, const std::string& name) {
  const std::size_t dash = name.find('-');
  const auto key = parse_number<int>(name.substr(0, dash));
  const auto last = dash == std::string::npos ? key : parse_number<int>(name.substr(dash + 1));
  if (key && last) {
    return *key >= launch.first_key && *last <= launch.last_key;
  }
  return launch.name == name || name == "last";
}

// Updates the record of an unfinished launch from the jobs here. `unknown`: jobs whose servers did not answer
// just now; this is not stored.
void bring_up_to_date(const jobs::LaunchStore& records, const std::vector<Job>& unknown, PastLaunch& record) {
  records.update(record);
  for (Job& job : record.jobs) {
    const auto now = std::ranges::find(unknown, job.id, &Job::id);
    job = now == unknown.end() || is_final(job.state) ? job : *now;
  }
  jobs::sum_up(record);
}

// If a file-syncing service merges the records of two machines into one folder, keys collide. The jobs
// already have new ones (jobs::Store); this updates the launches.
void mend_keys(jobs::LaunchStore& records, std::vector<LaunchSummary>& all) {
  std::vector<LaunchSummary*> by_key;
  std::ranges::transform(all, std::back_inserter(by_key), [](LaunchSummary& one) { return &one; });
  std::ranges::sort(by_key, {}, &LaunchSummary::first_key);
  std::set<LaunchSummary*> clashing;
  LaunchSummary* reaching = nullptr;  // the earlier launch with the highest key
  for (LaunchSummary* one : by_key) {
    if (reaching != nullptr && one->first_key > 0 && one->first_key <= reaching->last_key) {
      clashing.insert({one, reaching});
    }
    reaching = reaching == nullptr || one->last_key > reaching->last_key ? one : reaching;
  }
  for (LaunchSummary* one : clashing) {
    auto record = records.read(one->id);
    if (!record) {
      continue;
    }
    const int key = record->first_key;
    records.update(*record);
    if (record->first_key != key) {
      records.change(one->id, [&](PastLaunch& stored) { stored.jobs = record->jobs; });
      *one = std::move(*record);
    }
  }
}

// The launches with at least one known job.
std::vector<LaunchSummary> launches(jobs::LaunchStore& records, const std::vector<Job>& unknown,
                                    std::vector<std::string>* problems) {
  std::vector<LaunchSummary> all = records.list(problems);
  mend_keys(records, all);
  const std::vector<JobId> open = records.open();
  for (LaunchSummary& one : all) {
    if (!one.ended_at && std::ranges::find(open, one.id) != open.end()) {
      if (auto record = records.read(one.id)) {
        bring_up_to_date(records, unknown, *record);
        one = std::move(*record);
      }
    }
  }
  std::erase_if(all, [](const LaunchSummary& one) { return one.first_key == 0; });
  return all;
}

JobId find_launch(jobs::LaunchStore& records, const std::string& name) {
  const std::vector<LaunchSummary> all = launches(records, {}, nullptr);
  auto found = std::ranges::find_if(all, [&](const LaunchSummary& one) { return fits(one, name); });
  if (found == all.end() && name.size() >= 4) {
    const auto begins = [&](const LaunchSummary& one) { return one.id.text().starts_with(name); };
    found = std::ranges::find_if(all, begins);
    if (std::ranges::count_if(all, begins) > 1) {
      throw Error::usage(fmt::format("'{}' is the start of several launches' ids", name), "",
                         "give more of it, or a key of one of its jobs");
    }
  }
  if (found == all.end()) {
    std::vector<std::string> names;
    std::ranges::transform(all, std::back_inserter(names), &LaunchSummary::name);
    std::erase(names, "");
    const std::string near = did_you_mean(name, names);
    const Error error = Error::usage(
        fmt::format("there is no launch '{}' on record", visible_line(name)),
        all.empty() ? "there are no launches on record" : "",
        !near.empty() || all.empty() ? near : fmt::format("the last one is {}", all.front().first_key));
    throw all.empty() || !near.empty() ? error : error.mended_by(Remedy::list_launches);
  }
  return found->id;
}

}  // namespace

LaunchMemory::LaunchMemory(Core& core, const LaunchRequest& request, const Plan& plan, GitState& git,
                           std::vector<ServerSetup> servers, std::vector<LaunchStep> steps)
    : core_(core), id_(JobId::parse(plan.run_id).value_or(JobId::random())), servers_(std::move(servers)) {
  auto [record, patch] = git.get();
  record.id = id_;
  record.name = request.name;
  record.note = request.note.substr(0, longest_note);
  record.tags = plan.processes.back().tags;  // the tags of the first process also include "master"
  record.command = mask_command(request.command);
  record.beginning = {plan.launcher, servers_, std::move(steps)};
  record.version = fmt::format("{}.{}.{}", REMOTE_VERSION_MAJOR, REMOTE_VERSION_MINOR, REMOTE_VERSION_PATCH);
  record.began_at = now_seconds();
  record.variables = given_variables(core.config, request, servers_);
  record.request = request;
  for (const auto& [name, value] : request.env) {
    if (mask_value(name, value) != value) {
      record.secrets.push_back(name);
    }
  }
  written_ = change([&, &record = record, &patch = patch] {
    jobs::LaunchStore records(core_.store);
    records.add(record, patch);
    servers::keep_sent(core_.config, sent_digest(record), records.folder(id_));
  });
}

LaunchMemory::~LaunchMemory() {
  if (written_ && !started_) {
    change([&] { jobs::LaunchStore(core_.store).remove(id_); });
  }
}

void LaunchMemory::started(const std::vector<Job>& jobs, const std::optional<LaunchStep>& step,
                           const std::string& news) {
  started_ = true;
  if (!written_) {
    return;
  }
  change([&] {
    jobs::LaunchStore(core_.store).change(id_, [&](PastLaunch& record) {
      record.jobs = jobs;
      record.news = news;
      if (step) {
        record.beginning.steps.push_back(*step);
      }
    });
  });
  change([&] { write_variables(core_.store, jobs.front(), servers_); });
}

bool LaunchMemory::change(const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {  // the launch continues, but its record is incomplete
    core_.tell(StoreProblem{error.message()});
    return false;
  }
  return true;
}

JobSelection with_ids(const Core& core, const std::vector<Job>& jobs, JobSelection selection) {
  const auto is_name = [](const std::string& name) { return !config::launch_name_problem(name); };
  if (std::ranges::none_of(selection.names, is_name) && std::ranges::none_of(selection.launches, is_name)) {
    return selection;
  }
  const std::vector<LaunchSummary> all = jobs::LaunchStore(core.store).list();
  const auto named = [&](const std::string& name) {
    return std::ranges::find_if(all, [&](const LaunchSummary& one) {
      return one.name == name && is_name(name) &&
             std::ranges::any_of(jobs, [&](const Job& job) { return job.launch == one.id; });
    });
  };
  for (std::string& name : selection.launches) {
    if (const auto found = named(name); found != all.end()) {
      name = found->id.text();
    }
  }
  std::erase_if(selection.names, [&](const std::string& name) {
    const auto found = named(name);
    if (found != all.end()) {
      selection.launches.push_back(found->id.text());
    }
    return found != all.end();
  });
  return selection;
}

Error no_such_jobs(const Core& core, const std::vector<Job>& jobs, const JobSelection& selection,
                   const Error& error) {
  std::vector<std::string> names = selection.names;
  names.insert(names.end(), selection.launches.begin(), selection.launches.end());
  std::erase(names, "last");
  jobs::LaunchStore records(core.store);
  const std::vector<LaunchSummary> all =
      names.empty() ? std::vector<LaunchSummary>() : launches(records, {}, nullptr);
  for (const std::string& name : names) {
    const auto found = std::ranges::find_if(all, [&](const LaunchSummary& one) {
      return fits(one, name) || (name.size() >= 4 && one.id.text().starts_with(name));
    });
    if (found != all.end() && std::ranges::find(jobs, std::optional(found->id), &Job::launch) == jobs.end()) {
      return Error::usage(fmt::format("no jobs of launch '{}'", visible_line(name, most_of_name)),
                          "they were removed by job-clean, and their output with them",
                          "its record is still here")
          .mended_by(Remedy::list_launches);
    }
  }
  return error;
}

void check_name(const std::string& name) {
  if (const auto problem = name.empty() ? std::nullopt : config::launch_name_problem(name)) {
    throw Error::usage(fmt::format("a launch cannot have the name '{}'", visible_line(name, most_of_name)),
                       "", *problem);
  }
}

void complete_records(Core& core, const std::optional<Verdict>& verdict) {
  jobs::LaunchStore records(core.store);
  for (const JobId& id : records.open()) {
    try {
      complete(core, records, id, verdict);
    } catch (const Interrupted&) {
      return;  // results of the call itself are still reported
    } catch (const Error& error) {
      log_info("", "{}", error.message());  // retried next time
    }
  }
}

std::optional<PastLaunch> record_of(const Core& core, const std::vector<Job>& jobs) {
  return jobs.empty() || !jobs.front().launch ? std::nullopt
                                              : jobs::LaunchStore(core.store).read(*jobs.front().launch);
}

}  // namespace remote::project

namespace remote {

using jobs::LaunchStore;
using jobs::Store;

History::History(const std::filesystem::path& folder) : project_(folder) {
  const config::Config config = config::load(folder);
  if (!config::TrustStore(folder).not_allowed(config::folder_demands(config)).empty()) {
    throw Error::usage("this project is not trusted yet", "its records would be written outside its folder")
        .mended_by(Remedy::trust_settings);
  }
  store_ = project::store_folder(config);
}

std::vector<LaunchSummary> History::list(const HistoryRequest& request,
                                         std::vector<std::string>* problems) const {
  const Store store(store_);
  LaunchStore records(store);
  std::vector<LaunchSummary> all = project::launches(records, unknown_, problems);
  std::erase_if(all, [&](const LaunchSummary& one) {
    const bool failed = one.state == JobState::failed || one.state == JobState::lost;
    return (request.failed && !failed) || (request.since && one.began_at < *request.since) ||
           !std::ranges::all_of(request.tags, [&](const std::string& tag) {
             return std::ranges::find(one.tags, tag) != one.tags.end();
           });
  });
  if (!request.sort.empty()) {
    const std::string name = lower_case(request.sort);
    std::ranges::stable_sort(all, {}, [&](const LaunchSummary& one) {
      const auto found = std::ranges::find(one.numbers, name, &NamedNumber::name);
      return found == one.numbers.end() ? std::numeric_limits<double>::infinity() : found->value;
    });
  }
  return all;
}

bool History::has_open() const {
  const Store store(store_);
  return !LaunchStore(store).open().empty();
}

PastLaunch History::launch(const std::string& launch) const {
  const Store store(store_);
  LaunchStore records(store);
  auto record = records.read(project::find_launch(records, launch));
  if (!record) {
    throw Error::usage("there is no longer a launch '" + visible_line(launch) + "'", "", "list them again");
  }
  if (!record->ended_at) {
    project::bring_up_to_date(records, unknown_, *record);
  }
  return std::move(*record);
}

void History::set_note(const std::string& launch, const std::string& note) const {
  const Store store(store_);
  LaunchStore records(store);
  records.change(project::find_launch(records, launch),
                 [&](PastLaunch& record) { record.note = note.substr(0, project::longest_note); });
}

std::vector<std::string> History::columns() const {
  return config::history_columns(project_);
}

History Project::history(const std::optional<Cancel>& cancel) {
  return project::call_here(*state_, cancel, [](project::Core& core) {
    History history(core.config.project);
    if (history.has_open()) {
      history.unknown_ = project::list(core, {.unfinished_only = true});
      std::erase_if(history.unknown_, [](const Job& job) { return job.state != JobState::unknown; });
    }
    return history;
  });
}

}  // namespace remote
