// `remote job-tail`: shows and follows the output of jobs. `remote job-wait`: waits until jobs end; the exit
// code is 0 only if all succeeded.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <remote/sweep.hpp>

#include "base/clock.hpp"
#include "base/ranges.hpp"
#include "base/strings.hpp"
#include "cli/commands/ends.hpp"
#include "cli/options.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/output.hpp"
#include "cli/show/verdict.hpp"

namespace remote::cli {
namespace {

struct TailArguments {
  JobOptions jobs;
  bool all = false;
  std::vector<std::string> ranks;  // numbers or ranges
  std::optional<int> lines;
  std::string since;
  std::string grep;
  bool fold = false;
  bool no_follow = false;
  bool follow = false;
  bool raw = false;
  std::optional<double> delay;  // labml_remote polls at this interval; following does not need one
};

// Whether this names a job, by its key or the start of its id, and not a launch.
bool names_job(const std::string& name) {
  const bool digits = name.find_first_not_of("0123456789") == std::string::npos;
  return digits || (name.size() >= 4 && name.find_first_not_of("0123456789abcdef") == std::string::npos);
}

// The jobs to follow: the named jobs, and the first rank of each named launch; by default, the newest running
// master. With --all, every rank of the launch.
std::vector<Job> choose(Project& project, const JobOptions& options, bool all) {
  if (!options.by_name()) {
    const Job newest = project.newest_master(options.tags);
    return all ? project.with_launch({newest}) : std::vector<Job>{newest};
  }
  const JobSelection selection = options.selection();
  if (all) {
    return project.with_launch(project.jobs({.selection = selection, .some = true, .ask = false}));
  }
  // A launch means its first rank; the key of a rank means that rank.
  JobSelection jobs{.names = {}, .launches = {}, .tags = selection.tags};
  JobSelection launches{.names = {}, .launches = selection.launches, .tags = selection.tags};
  for (const std::string& name : selection.names) {
    (names_job(name) ? jobs.names : name == "last" ? launches.names : launches.launches).push_back(name);
  }
  std::vector<Job> chosen;
  if (!jobs.names.empty()) {
    chosen = project.jobs({.selection = jobs, .some = true, .ask = false});
  }
  if (!launches.names.empty() || !launches.launches.empty()) {
    for (const Batch& batch : by_launch(project.jobs({.selection = launches, .some = true, .ask = false}))) {
      const Job& first = first_rank(batch);
      if (std::ranges::find(chosen, first.id, &Job::id) == chosen.end()) {
        chosen.push_back(first);
      }
    }
  }
  return chosen;
}

// Throws Error (usage).
std::vector<int> ranks_named(const std::vector<std::string>& texts) {
  std::set<int> ranks;
  for (const std::string& text : texts) {
    const auto numbers = numbers_of(text, 999999);
    if (!numbers) {
      throw Error::usage("remote job-tail: --rank",
                         "'" + visible_line(text) + "' is not a rank or a range of ranks",
                         "such as --rank 3,7 or --rank 0-3");
    }
    ranks.insert(numbers->begin(), numbers->end());
  }
  return {ranks.begin(), ranks.end()};
}

// The jobs of the launch that run these ranks.
std::vector<Job> with_ranks(Project& project, const JobOptions& options, const std::vector<int>& ranks) {
  const std::vector<Job> all = choose(project, options, true);
  std::vector<Job> found;
  for (const int rank : ranks) {
    std::vector<Job> have;
    std::ranges::copy_if(all, std::back_inserter(have), [&](const Job& job) {
      const int first = job.rank.value_or(-1);
      return first >= 0 && rank >= first && rank < first + ranks_of(job);
    });
    if (have.size() != 1) {
      throw Error::usage(
          fmt::format("remote job-tail: {} rank {}", have.empty() ? "there is no" : "several jobs are", rank),
          all.empty() ? "" : describe(all), "name a launch that has it: --launch KEY");
    }
    if (std::ranges::find(found, have.front().id, &Job::id) == found.end()) {
      found.push_back(std::move(have.front()));
    }
  }
  return found;
}

// Removes the points of a sweep that have not started, if others have.
void leave_waiting(Context& context, std::vector<Job>& jobs) {
  if (jobs.size() > 1 && std::ranges::any_of(jobs, waits_for_turn)) {
    jobs = context.project().refresh(std::move(jobs));
    const auto waiting = static_cast<std::size_t>(std::ranges::count_if(jobs, waits_for_turn));
    if (waiting > 0 && waiting < jobs.size()) {
      std::erase_if(jobs, waits_for_turn);
      context.terminal.notice(fmt::format("{} of the sweep {} for {} turn", counted(waiting, "point"),
                                          waiting == 1 ? "waits" : "wait", waiting == 1 ? "its" : "their"));
    }
  }
}

int tail(Context& context, const TailArguments& arguments) {
  refuse_output_as_json(context, "job-tail --json");
  FollowRequest request;
  if (!arguments.since.empty()) {
    request.since = std::max(std::chrono::seconds(0), now_seconds() - parse_since(arguments.since));
  }
  // With --grep, searches from the start.
  request.lines = arguments.lines || request.since || !arguments.grep.empty() ? arguments.lines : 20;
  request.grep = arguments.grep;
  request.fold = arguments.fold;
  request.follow = !arguments.no_follow && arguments.delay != 0;  // in labml_remote, 0 means not to follow
  request.judge = true;
  const bool all = arguments.all || (arguments.fold && arguments.ranks.empty());
  request.each_rank = all;
  if (arguments.delay.value_or(0) != 0) {
    context.terminal.notice("--delay has no effect: output is shown as soon as it is written");
  }
  if (!arguments.ranks.empty()) {
    request.ranks = ranks_named(arguments.ranks);
    return follow_on_screen(context, with_ranks(context.project(), arguments.jobs, request.ranks), request,
                            arguments.raw);
  }
  std::vector<Job> jobs = choose(context.project(), arguments.jobs, all);
  leave_waiting(context, jobs);
  const JobSelection selection = arguments.jobs.selection();
  const bool by_key = std::ranges::any_of(selection.names, names_job);
  if (!all && !by_key) {
    request.ranks = {0};
    if (request.follow && jobs.size() == 1 && jobs.front().launch) {  // the verdict waits for all ranks
      request.first_rank_only = true;
      for (Job& job : context.project().with_launch(jobs)) {
        if (job.id != jobs.front().id && !is_final(job.state)) {
          jobs.push_back(std::move(job));
        }
      }
    }
  }
  return follow_on_screen(context, jobs, request, arguments.raw);
}

struct WaitArguments {
  JobOptions jobs;
  std::string since;
  AtEnd at_end;
};

// Keeps the jobs from `since` on: a key, the start of an id, or "last" for the newest job. For a launch, from
// its first job on.
void leave_since(Project& project, const WaitArguments& arguments, std::vector<Job>& jobs) {
  const std::vector<Job> from = project.with_launch(
      project.jobs({.selection = {.names = {arguments.since}, .launches = {}, .tags = arguments.jobs.tags},
                    .some = true,
                    .ask = false}));
  const int key = std::ranges::min_element(from, {}, &Job::key)->key;
  std::erase_if(jobs, [&](const Job& job) { return job.key < key; });
}

void tell_of_ended(Context& context, std::ptrdiff_t launches) {
  if (launches > 0) {
    context.terminal.notice(fmt::format(
        "{} of them had already ended, and count, too; --since last waits only for the newest", launches));
  }
}

// The jobs with their servers' immediate answers. The command waits for slow servers later, so these are not
// reported.
std::vector<Job> asked_quickly(Context& context, std::vector<Job> jobs) {
  const auto usual = std::exchange(context.on_event, [&context](const Event& event) {
    if (!std::holds_alternative<SilentServers>(event)) {
      context.show(event);
    }
  });
  jobs = context.project().refresh(std::move(jobs));
  context.on_event = usual;
  return jobs;
}

int wait(Context& context, const WaitArguments& arguments) {
  const JobOptions& options = arguments.jobs;
  const Instant begin = now_seconds();
  std::vector<Job> jobs = context.project().jobs({.selection = options.selection(),
                                                  .some = options.named(),
                                                  .unfinished_only = !options.named(),
                                                  .ask = false});
  if (!options.named()) {  // do not wait for leftover processes of an ended job
    std::erase_if(jobs, [](const Job& job) { return is_final(job.state); });
  }
  std::ptrdiff_t before = -1;  // number of launches with the tag that had ended; below 0: not counted
  if (!arguments.since.empty()) {
    leave_since(context.project(), arguments, jobs);
  } else if (!options.tags.empty() && by_launch(jobs).size() > 1) {
    jobs = asked_quickly(context, std::move(jobs));  // the records here may not yet show that some have ended
    before = std::ranges::count_if(by_launch(jobs), has_ended);
    tell_of_ended(context, before);
  }
  EndTeller ends(context.terminal, jobs);
  const auto take = [&](const Job& job) {
    if (context.stream && is_final(job.state)) {
      context.stream->ended(job);
    }
    ends.take(job);
  };
  std::size_t running = 0;
  for (const Job& job : jobs) {
    if (is_final(job.state)) {
      take(job);
    } else {
      ++running;
    }
  }
  if (jobs.empty()) {
    context.terminal.notice("no unfinished jobs; nothing to wait for");
  } else if (running > 0) {
    context.terminal.notice("waiting for " + counted(running, "job"));
  }
  context.when_interrupted =
      running == 1 ? "stopped waiting; the job keeps running" : "stopped waiting; the jobs keep running";
  const FollowResult result = context.project().wait(jobs, [&](std::size_t, const Job& job) { take(job); });
  ends.finish(result.verdict.has_value(), result.jobs);
  if (before == 0) {  // a slow server may have reported some since
    tell_of_ended(context, std::ranges::count_if(by_launch(result.jobs), [&](const Batch& batch) {
                    return has_ended(batch) &&
                           std::ranges::all_of(batch, [&](const Job& job) { return end_of(job) < begin; });
                  }));
  }
  show_end(context, result);
  if (context.options.json) {
    context.print(jobs_json(result.jobs));
  }
  const bool went_on = result.verdict && !result.verdict->left.empty();
  const bool all_well = result.errors.empty() && std::ranges::all_of(result.jobs, [](const Job& job) {
                          return is_final(job.state) && exit_code_of(job) == 0;
                        });
  if (!result.jobs.empty()) {
    arguments.at_end.tell(context, result.jobs, all_well || went_on);
  }
  return all_well || went_on ? 0 : 1;
}

}  // namespace

void add_job_tail(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, tail);
  arguments.jobs.add(command, context, "The newest running job with this tag (default: master)");
  arguments.jobs.add_words(command, context);
  CLI::Option* all =
      command.add_flag("-a,--all", arguments.all, "All ranks of the launch, each line with its rank");
  command.add_option("--rank", arguments.ranks, "Only these ranks of the launch: 3,7 or 0-3")
      ->type_name("N,…")
      ->delimiter(',')
      ->excludes(all);
  command.add_flag("--fold", arguments.fold, "A line that several ranks write is shown once (all ranks)");
  command
      .add_option("--grep", arguments.grep, "Only lines that match, as with grep -E; from the first line on")
      ->type_name("REGEX");
  add_number_option(command, "-n,--lines", arguments.lines, "Lines to start with, from the end (default: 20)",
                    "N", 0, 1000000000);
  command.add_option("--since", arguments.since, "Start with the lines of this time: 10m, 2h, 2026-11-21")
      ->type_name("AGE|DAY")
      ->excludes("--lines");
  command
      .add_option("--delay", arguments.delay, "Accepted for labml_remote's command lines; 0 is --no-follow")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--no-follow", arguments.no_follow, "Stop at the end of the output so far");
  command.add_flag("--raw", arguments.raw,
                   "Pass all escape sequences to the terminal (default: color and movement in a line)");
  command.add_flag("-f,--follow", arguments.follow, "Follow until the job ends (the default)");
}

void add_job_wait(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, wait);
  arguments.jobs.add(command, context);
  arguments.jobs.add_words(command, context);
  command
      .add_option("--since", arguments.since, "Only jobs from this one on; last: the newest with these tags")
      ->type_name("KEY|last");
  arguments.at_end.add(command);
}

}  // namespace remote::cli
