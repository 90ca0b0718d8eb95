// `remote job-kill`: ends jobs, and proves it.

#include <csignal>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/strings.hpp"
#include "base/visible.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options.hpp"
#include "cli/show/job_words.hpp"

namespace remote::cli {
namespace {

struct Arguments {
  JobOptions jobs;
  std::string signal = "TERM";
  int grace = 10;
  bool yes = false;
};

std::string outcome_text(const KillResult::Entry& entry) {
  switch (entry.outcome) {
    case KillResult::Entry::Outcome::killed:
      return "killed";
    case KillResult::Entry::Outcome::ended:
      return entry.signalled > 0 ? "had ended before; what it left behind was ended now" : "had ended before";
    case KillResult::Entry::Outcome::none:
      return "was never started there";
    case KillResult::Entry::Outcome::survivors:
      return "NOT ended";
    case KillResult::Entry::Outcome::refused:
      return "NOT ended: " + visible_line(entry.reason);
  }
  return "";
}

// The unfinished jobs that fit; those that are named by their keys also when they have ended.
std::vector<Job> choose(Context& context, const JobOptions& options) {
  std::vector<Job> chosen = context.project().jobs(
      {.selection = options.selection(), .unfinished_only = options.keys.empty(), .ask = false});
  if (options.keys.empty()) {
    std::erase_if(chosen, [](const Job& job) { return is_final(job.state); });
  }
  return chosen;
}

// Returns whether all have ended.
bool report(Context& context, const KillResult& result) {
  bool all_ended = result.errors.empty();
  nlohmann::json all = nlohmann::json::array();
  for (const KillResult::Entry& entry : result.entries) {
    const bool ended = entry.outcome != KillResult::Entry::Outcome::survivors &&
                       entry.outcome != KillResult::Entry::Outcome::refused;
    all_ended = all_ended && ended;
    all.push_back({{"key", entry.job.key},
                   {"id", entry.job.id.text()},
                   {"server", entry.job.server},
                   {"state", to_string(entry.job.state)},
                   {"ended", ended},
                   {"signalled", entry.signalled},
                   {"survivors", entry.survivors}});
    if (!context.options.json) {
      context.terminal.out(fmt::format("{}: {}\n", describe(entry.job), outcome_text(entry)));
    }
    for (const std::string& survivor : entry.survivors) {
      context.terminal.err(fmt::format("  still there: {}\n", visible_line(survivor)));
    }
  }
  context.show(result.errors);
  if (context.options.json) {
    context.terminal.out(dump_json(all));
  }
  return all_ended;
}

int run(Context& context, const Arguments& arguments) {
  KillRequest request;
  request.grace = std::chrono::seconds(arguments.grace);
  if (const auto signal = signal_number(arguments.signal)) {
    request.signal = *signal;
  } else {
    throw Error::usage("--signal " + arguments.signal, "there is no such signal", "try TERM, INT or KILL");
  }
  const std::vector<Job> chosen = choose(context, arguments.jobs);
  if (chosen.empty()) {
    context.terminal.notice(arguments.jobs.named() && arguments.jobs.keys.empty()
                                ? "no unfinished job has these tags; nothing to end"
                                : "no unfinished jobs; nothing to end");
  } else if (!arguments.jobs.named() && !arguments.yes) {
    const std::string what = counted(chosen.size(), "unfinished job");
    context.confirm(chosen, fmt::format("End {}?", what), "nothing was ended",
                    Error::usage("job-kill", "no job is named, and that would end " + what,
                                 "name them with --job or --tag, or add --yes"));
  }
  if (!chosen.empty() && arguments.grace > 0 && request.signal != SIGKILL) {
    context.terminal.notice(fmt::format("ending {}; what has not ended after {} s is killed",
                                        counted(chosen.size(), "job"), arguments.grace));
  }
  return report(context, chosen.empty() ? KillResult() : context.project().kill(chosen, request)) ? 0 : 1;
}

}  // namespace

void add_job_kill(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("job-kill", "End jobs, and prove that nothing of them is left");
  const auto arguments = std::make_shared<Arguments>();
  arguments->jobs.add(*command, context);
  CLI::Option* signal =
      command->add_option("--signal", arguments->signal, "The first signal (default: TERM)");
  signal->type_name("S");
  context.completers[signal] = NameKind::signals;
  command->add_option("--grace", arguments->grace, "Seconds until KILL follows (default: 10)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 86400));
  command->add_flag("--yes", arguments->yes, "Do not ask before ending all unfinished jobs");
  command->callback([arguments, &context] { context.exit_code = run(context, *arguments); });
}

}  // namespace remote::cli
