// `remote job-tail`: shows and follows jobs' output.

#include <CLI/App.hpp>
#include <remote/error.hpp>

#include "cli/commands.hpp"
#include "cli/common.hpp"
#include "cli/following.hpp"
#include "cli/verdict.hpp"
#include "jobs/select.hpp"

namespace remote::cli {
namespace {

struct Arguments {
  std::vector<std::string> keys;
  std::vector<std::string> tags;
  bool all = false;
  int lines = 20;
  bool no_follow = false;
};

// What is followed: the jobs named; with --all every rank of the launch; by default the newest running
// master.
std::vector<jobs::Job> choose(Context& context, jobs::Store& store, const Arguments& arguments) {
  std::vector<jobs::Job> stored = stored_jobs(context, store);
  std::vector<jobs::Job> chosen;
  if (!arguments.keys.empty()) {
    JobSelection selection;
    selection.names = arguments.keys;
    selection.tags = arguments.tags;
    chosen = jobs::select(stored, selection);
    if (chosen.empty()) {
      throw jobs::nothing_selected(stored, selection);
    }
  } else {
    chosen = {jobs::default_to_follow(stored, arguments.tags)};
  }
  if (!arguments.all) {
    return chosen;
  }
  std::vector<jobs::Job> ranks;
  for (const jobs::Job& job : stored) {
    for (const jobs::Job& one : chosen) {
      if (job.id == one.id || (one.launch && job.launch == one.launch)) {
        ranks.push_back(job);
        break;
      }
    }
  }
  return ranks;
}

int run(Context& context, const Arguments& arguments) {
  jobs::Store store = open_store(context);
  FollowChoice choice;
  choice.lines = arguments.lines;
  choice.follow = !arguments.no_follow;
  const std::vector<jobs::Job> chosen = choose(context, store, arguments);
  choice.whole_launch = arguments.all && are_one_launch(chosen);
  return follow_on_screen(context, store, chosen, choice);
}

}  // namespace

void add_job_tail(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("job-tail", "Show and follow the output of jobs");
  const auto arguments = std::make_shared<Arguments>();
  add_job_option(*command, arguments->keys);
  add_tag_option(*command, arguments->tags, "The newest running job with this tag (default: master)");
  command->add_flag("--all", arguments->all, "All ranks of the launch, each line with its rank");
  command->add_option("--lines", arguments->lines, "Begin with the last N lines (default: 20)")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000000));
  command->add_flag("--no-follow", arguments->no_follow, "Stop at the end of what is there");
  command->callback([arguments, &context] { context.exit_code = run(context, *arguments); });
}

}  // namespace remote::cli
