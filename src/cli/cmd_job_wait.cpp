// `remote job-wait`: waits until jobs end; exit code 0 only if all succeeded.

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <remote/error.hpp>

#include "base/strings.hpp"
#include "cli/commands.hpp"
#include "cli/common.hpp"
#include "cli/verdict.hpp"
#include "jobs/follow.hpp"
#include "jobs/select.hpp"

namespace remote::cli {
namespace {

struct Arguments {
  std::vector<std::string> keys;
  std::vector<std::string> tags;
};

int run(Context& context, const Arguments& arguments) {
  jobs::Store store = open_store(context);
  const bool named = !arguments.keys.empty() || !arguments.tags.empty();
  const std::vector<jobs::Job> stored = stored_jobs(context, store, !named);
  JobSelection selection;
  selection.names = arguments.keys;
  selection.tags = arguments.tags;
  std::vector<jobs::Job> chosen = jobs::select(stored, selection);
  if (chosen.empty() && named) {
    throw jobs::nothing_selected(stored, selection);
  }
  std::vector<jobs::Job> now = chosen;
  std::vector<jobs::Job> running;
  std::vector<std::size_t> where;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (!jobs::is_final(chosen[i].state)) {
      running.push_back(chosen[i]);
      where.push_back(i);
    }
  }
  for (const jobs::Job& job : now) {
    if (jobs::is_final(job.state)) {
      context.terminal.notice(fmt::format("{}: {}", describe(job), state_text(job)));
    }
  }
  if (running.empty() && now.empty()) {
    context.terminal.notice("no unfinished jobs; nothing to wait for");
  } else if (!running.empty()) {
    context.terminal.notice("waiting for " + counted(running.size(), "job"));
  }
  // Following in silence is waiting: the end is told at once, and a broken link is mended.
  jobs::FollowEvents events;
  events.output = [](std::size_t, ssh::Stream, std::string_view) {};
  events.ended = [&](std::size_t, const jobs::Job& job) {
    context.terminal.notice(fmt::format("{}: {}", describe(job), state_text(job)));
  };
  events.notice = [&](const std::string& text) { context.terminal.notice(text); };
  jobs::FollowOptions options;
  options.silent.assign(running.size(), true);
  options.patience = std::chrono::seconds(60);
  const jobs::FollowResult result =
      jobs::follow(context.config(), store, context.connector(), running, options, events, context.cancel);
  for (std::size_t i = 0; i < where.size(); ++i) {
    now[where[i]] = result.jobs[i];
  }
  for (const Error& error : result.errors) {
    context.show(error);
  }
  bool all_well = result.errors.empty();
  for (const jobs::Job& job : now) {
    all_well = all_well && job.state == jobs::State::succeeded;
  }
  if (are_one_launch(now) && result.errors.empty()) {
    tell_verdict(context, now);
  }
  if (context.options.json) {
    context.terminal.out(json_text(now));
  }
  return all_well ? 0 : 1;
}

}  // namespace

void add_job_wait(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("job-wait", "Wait until jobs end; exit code 0 only if all succeeded");
  const auto arguments = std::make_shared<Arguments>();
  add_job_option(*command, arguments->keys);
  add_tag_option(*command, arguments->tags, "Jobs with this tag; with several, jobs that have all");
  command->callback([arguments, &context] { context.exit_code = run(context, *arguments); });
}

}  // namespace remote::cli
