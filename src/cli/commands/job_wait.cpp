// `remote job-wait`: waits until jobs end; exit code 0 only if all succeeded.

#include <algorithm>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "base/strings.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options.hpp"
#include "cli/show/job_words.hpp"
#include "cli/show/verdict.hpp"

namespace remote::cli {
namespace {

int run(Context& context, const JobOptions& options) {
  const std::vector<Job> jobs = context.project().jobs({.selection = options.selection(),
                                                        .some = options.named(),
                                                        .unfinished_only = !options.named(),
                                                        .ask = false});
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
  context.show(result.errors);
  if (result.verdict) {
    show_verdict(context, *result.verdict);
  }
  if (context.options.json) {
    context.terminal.out(jobs_json(result.jobs));
  }
  const bool all_well = result.errors.empty() && std::ranges::all_of(result.jobs, [](const Job& job) {
                          return job.state == JobState::succeeded;
                        });
  return all_well ? 0 : 1;
}

}  // namespace

void add_job_wait(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("job-wait", "Wait until jobs end; exit code 0 only if all succeeded");
  const auto jobs = std::make_shared<JobOptions>();
  jobs->add(*command, context);
  command->callback([jobs, &context] { context.exit_code = run(context, *jobs); });
}

}  // namespace remote::cli
