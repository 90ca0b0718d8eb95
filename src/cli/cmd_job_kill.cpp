// `remote job-kill`: ends jobs, and proves it.

#include <csignal>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/error.hpp>

#include "base/json.hpp"
#include "base/strings.hpp"
#include "base/visible.hpp"
#include "cli/commands.hpp"
#include "cli/common.hpp"
#include "jobs/kill.hpp"
#include "jobs/select.hpp"

namespace remote::cli {
namespace {

struct Arguments {
  std::vector<std::string> keys;
  std::vector<std::string> tags;
  std::string signal = "TERM";
  int grace = 10;
  bool yes = false;
};

std::string outcome_text(const jobs::KillReply& reply) {
  switch (reply.outcome) {
    case jobs::KillReply::Outcome::killed:
      return "killed";
    case jobs::KillReply::Outcome::ended:
      return reply.signalled > 0 ? "had ended before; what it left behind was ended now" : "had ended before";
    case jobs::KillReply::Outcome::none:
      return "was never started there";
    case jobs::KillReply::Outcome::survivors:
      return "NOT ended";
  }
  return "";
}

int run(Context& context, const Arguments& arguments) {
  const auto signal = signal_number(arguments.signal);
  if (!signal) {
    throw Error::usage("--signal " + arguments.signal, "there is no such signal", "try TERM, INT or KILL");
  }
  jobs::Store store = open_store(context);
  const bool named = !arguments.keys.empty() || !arguments.tags.empty();
  const std::vector<jobs::Job> stored = stored_jobs(context, store, arguments.keys.empty());
  JobSelection selection;
  selection.names = arguments.keys;
  selection.tags = arguments.tags;
  std::vector<jobs::Job> chosen = jobs::select(stored, selection);
  if (arguments.keys.empty()) {
    std::erase_if(chosen, [](const jobs::Job& job) { return jobs::is_final(job.state); });
  }
  if (chosen.empty()) {
    if (named && arguments.keys.empty()) {
      context.terminal.notice("no unfinished job has these tags; nothing to end");
    } else {
      context.terminal.notice("no unfinished jobs; nothing to end");
    }
    if (context.options.json) {
      context.terminal.out("[]\n");
    }
    return 0;
  }
  if (!named && !arguments.yes) {
    const std::string what = counted(chosen.size(), "unfinished job");
    confirm(context, chosen, fmt::format("End {}?", what), "nothing was ended",
            Error::usage("job-kill", "no job is named, and that would end " + what,
                         "name them with --job or --tag, or add --yes"));
  }
  jobs::KillOptions options;
  options.signal = *signal;
  options.grace_s = arguments.grace;
  options.by = who_am_i();
  if (options.grace_s > 0 && options.signal != SIGKILL) {
    context.terminal.notice(fmt::format("ending {}; what has not ended after {} s is killed",
                                        counted(chosen.size(), "job"), options.grace_s));
  }
  const jobs::KillResult result =
      jobs::kill(context.config(), store, context.connector(), chosen, options, context.cancel);
  context.show_new_host_keys();
  bool failed = !result.errors.empty();
  nlohmann::json all = nlohmann::json::array();
  for (const auto& [job, reply] : result.entries) {
    const bool survived = reply.outcome == jobs::KillReply::Outcome::survivors;
    failed = failed || survived;
    if (context.options.json) {
      all.push_back({{"key", job.key},
                     {"id", job.id.text()},
                     {"server", job.server},
                     {"state", jobs::to_string(job.state)},
                     {"ended", !survived},
                     {"signalled", reply.signalled},
                     {"survivors", reply.survivors}});
    } else {
      context.terminal.out(fmt::format("{}: {}\n", describe(job), outcome_text(reply)));
    }
    for (const std::string& survivor : reply.survivors) {
      context.terminal.err(fmt::format("  still there: {}\n", visible_line(survivor)));
    }
  }
  for (const Error& error : result.errors) {
    context.show(error);
  }
  if (context.options.json) {
    context.terminal.out(dump_json(all));
  }
  return failed ? 1 : 0;
}

}  // namespace

void add_job_kill(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("job-kill", "End jobs, and prove that nothing of them is left");
  const auto arguments = std::make_shared<Arguments>();
  add_job_option(*command, arguments->keys);
  add_tag_option(*command, arguments->tags, "Jobs with this tag; with several, jobs that have all");
  command->add_option("--signal", arguments->signal, "The first signal (default: TERM)")->type_name("S");
  command->add_option("--grace", arguments->grace, "Seconds until KILL follows (default: 10)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 86400));
  command->add_flag("--yes", arguments->yes, "Do not ask before ending all unfinished jobs");
  command->callback([arguments, &context] { context.exit_code = run(context, *arguments); });
}

}  // namespace remote::cli
