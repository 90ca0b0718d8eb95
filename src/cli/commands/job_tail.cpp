// `remote job-tail`: shows and follows jobs' output.

#include <CLI/App.hpp>

#include "cli/commands/commands.hpp"
#include "cli/options.hpp"
#include "cli/show/following.hpp"

namespace remote::cli {
namespace {

struct Arguments {
  JobOptions jobs;
  bool all = false;
  int lines = 20;
  bool no_follow = false;
};

// What is followed: the jobs named; with --all every rank of the launch; by default the newest running
// master.
std::vector<Job> choose(Project& project, const Arguments& arguments) {
  const std::vector<Job> chosen =
      arguments.jobs.keys.empty()
          ? std::vector<Job>{project.newest_master(arguments.jobs.tags)}
          : project.jobs({.selection = arguments.jobs.selection(), .some = true, .ask = false});
  return arguments.all ? project.with_launch(chosen) : chosen;
}

int run(Context& context, const Arguments& arguments) {
  FollowRequest request;
  request.lines = arguments.lines;
  request.follow = !arguments.no_follow;
  request.judge = arguments.all;
  return follow_on_screen(context, choose(context.project(), arguments), request);
}

}  // namespace

void add_job_tail(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("job-tail", "Show and follow the output of jobs");
  const auto arguments = std::make_shared<Arguments>();
  arguments->jobs.add(*command, context, "The newest running job with this tag (default: master)");
  command->add_flag("--all", arguments->all, "All ranks of the launch, each line with its rank");
  command->add_option("--lines", arguments->lines, "Begin with the last N lines (default: 20)")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000000));
  command->add_flag("--no-follow", arguments->no_follow, "Stop at the end of what is there");
  command->callback([arguments, &context] { context.exit_code = run(context, *arguments); });
}

}  // namespace remote::cli
