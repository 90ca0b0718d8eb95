// `remote job-why`: explains why a launch hangs or is slow.

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/running_ranks.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/waiting.hpp"
#include "cli/show/why.hpp"

namespace remote::cli {
namespace {

struct WhyArguments {
  JobOptions jobs;
  int seconds = 5;
  bool evidence = false;
  bool kept = false;
};

// The jobs of a launch whose saved data is to be shown: one that hung and has ended or, with --kept, any.
// Empty: take new samples.
std::vector<Job> with_kept(Context& context, const WhyArguments& arguments) {
  if (!arguments.kept && !arguments.jobs.by_name()) {
    return {};
  }
  JobSelection selection = arguments.jobs.selection();
  if (!arguments.jobs.by_name()) {
    selection.launches = {"last"};
  }
  std::vector<Job> jobs = context.project().jobs({.selection = selection});
  const bool hung = std::ranges::any_of(jobs, [](const Job& job) { return job.hung.has_value(); });
  const bool over = std::ranges::all_of(jobs, [](const Job& job) { return is_final(job.state); });
  if (arguments.kept && !hung) {
    throw Error::usage("job-why --kept", "nothing was kept: these jobs did not hang",
                       "launch with --hang-after to keep it");
  }
  return arguments.kept || (hung && over) ? jobs : std::vector<Job>();
}

int run_why(Context& context, const WhyArguments& arguments) {
  std::optional<Waiting> waiting(std::in_place, context.terminal, "for servers with jobs");
  ChosenRanks chosen{with_kept(context, arguments), {}};
  const bool kept = !chosen.jobs.empty();
  if (!kept) {
    chosen = choose_ranks(context.project(), "job-why", arguments.jobs);
  }
  std::ranges::move(chosen.absent, std::back_inserter(chosen.jobs));
  std::set<std::optional<JobId>> launches;
  std::ranges::transform(chosen.jobs, std::inserter(launches, launches.end()), &Job::launch);
  if (launches.size() > 1) {
    throw Error::usage("job-why", "these jobs belong to several launches",
                       "name one: remote job-why --launch KEY");
  }
  waiting->set((kept ? "for the evidence kept on " : "for two samples from ") + server_names(chosen.jobs));
  const Why why =
      context.project().why(chosen.jobs, {.between = std::chrono::seconds(arguments.seconds), .kept = kept});
  waiting.reset();
  if (context.options.json) {
    context.print(why_json(why));
  } else {
    std::string text;
    for (const std::string& line : why_lines(why)) {
      text += (text.empty() ? context.terminal.paint_out(ui::Style::bold, line) : line) + "\n";
    }
    if (arguments.evidence) {
      text += "\n";
      for (const std::string& line : why_evidence(why)) {
        text += line + "\n";
      }
    }
    context.terminal.out(text);
    context.terminal.notice("next: " + why_next(why));
  }
  context.show(why.errors);
  return why.kind == WhyKind::unknown || !why.errors.empty() ? 1 : 0;
}

}  // namespace

void add_job_why(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_why);
  arguments.jobs.add(command, context, "Jobs with this tag (default: the newest running launch)");
  arguments.jobs.add_words(command, context);
  command.add_flag("--kept", arguments.kept, "Show the evidence from when the launch hung (--hang-after)");
  command.add_flag("--evidence", arguments.evidence, "Show the evidence of each rank and server");
  add_number_option(command, "--between", arguments.seconds, "Seconds between two samples (default: 5)",
                    "SECONDS", 1, 600);
}

}  // namespace remote::cli
