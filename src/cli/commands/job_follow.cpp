// `remote job-tail`: shows and follows jobs' output. `remote job-wait`: waits until jobs end; exit code 0
// only if all succeeded.

#include <algorithm>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/output.hpp"

namespace remote::cli {
namespace {

struct TailArguments {
  JobOptions jobs;
  bool all = false;
  int lines = 20;
  bool no_follow = false;
};

// What is followed: the jobs named; with --all every rank of the launch; by default the newest running
// master.
std::vector<Job> choose(Project& project, const TailArguments& arguments) {
  const std::vector<Job> chosen =
      arguments.jobs.keys.empty()
          ? std::vector<Job>{project.newest_master(arguments.jobs.tags)}
          : project.jobs({.selection = arguments.jobs.selection(), .some = true, .ask = false});
  return arguments.all ? project.with_launch(chosen) : chosen;
}

int tail(Context& context, const TailArguments& arguments) {
  FollowRequest request;
  request.lines = arguments.lines;
  request.follow = !arguments.no_follow;
  request.judge = arguments.all;
  return follow_on_screen(context, choose(context.project(), arguments), request);
}

int wait(Context& context, const JobOptions& options) {
  std::vector<Job> jobs = context.project().jobs({.selection = options.selection(),
                                                  .some = options.named(),
                                                  .unfinished_only = !options.named(),
                                                  .ask = false});
  if (!options.named()) {  // it is not waited for what an ended one has left behind
    std::erase_if(jobs, [](const Job& job) { return is_final(job.state); });
  }
  const auto tell = [&](std::size_t, const Job& job) {
    context.terminal.notice(fmt::format("{}: {}", describe(job), state_text(job)));
  };
  std::size_t running = 0;
  for (const Job& job : jobs) {
    if (is_final(job.state)) {
      tell(0, job);
    } else {
      ++running;
    }
  }
  if (jobs.empty()) {
    context.terminal.notice("no unfinished jobs; nothing to wait for");
  } else if (running > 0) {
    context.terminal.notice("waiting for " + counted(running, "job"));
  }
  const FollowResult result = context.project().wait(jobs, tell);
  show_end(context, result);
  if (context.options.json) {
    context.terminal.out(jobs_json(result.jobs));
  }
  const bool all_well = result.errors.empty() && std::ranges::all_of(result.jobs, [](const Job& job) {
                          return job.state == JobState::succeeded;
                        });
  return all_well ? 0 : 1;
}

}  // namespace

void add_job_tail(CLI::App& app, Context& context) {
  const auto [command, arguments] =
      add_command(app, context, "job-tail", "Show and follow the output of jobs", tail);
  arguments.jobs.add(command, context, "The newest running job with this tag (default: master)");
  command.add_flag("--all", arguments.all, "All ranks of the launch, each line with its rank");
  add_number_option(command, "--lines", arguments.lines, "Begin with the last N lines (default: 20)", "N", 0,
                    1000000000);
  command.add_flag("--no-follow", arguments.no_follow, "Stop at the end of what is there");
}

void add_job_wait(CLI::App& app, Context& context) {
  const auto [command, jobs] =
      add_command(app, context, "job-wait", "Wait until jobs end; exit code 0 only if all succeeded", wait);
  jobs.add(command, context);
}

}  // namespace remote::cli
