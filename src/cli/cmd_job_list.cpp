// `remote job-list`: the jobs of the project, after asking the servers of the unfinished ones.

#include <chrono>
#include <set>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <poll.h>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "cli/commands.hpp"
#include "cli/common.hpp"
#include "cli/job_logs.hpp"
#include "cli/lifeline_news.hpp"
#include "jobs/refresh.hpp"
#include "jobs/select.hpp"
#include "ui/table.hpp"

namespace remote::cli {
namespace {

struct Arguments {
  bool rsync = false;
  bool stopped = false;
  bool hidden = false;
  bool offline = false;
  bool watch = false;
  std::vector<std::string> tags;
};

ui::Style style_of(jobs::State state) {
  switch (state) {
    case jobs::State::running:
      return ui::Style::green;
    case jobs::State::starting:
    case jobs::State::unknown:
      return ui::Style::yellow;
    case jobs::State::failed:
    case jobs::State::lost:
      return ui::Style::red;
    case jobs::State::killed:
      return ui::Style::magenta;
    case jobs::State::succeeded:
      return ui::Style::plain;
  }
  return ui::Style::plain;
}

// How long it ran, or runs.
std::string duration(const jobs::Job& job, std::int64_t now) {
  if (!job.started_at) {
    return "-";
  }
  if (job.ended_at) {
    return format_duration(*job.ended_at - *job.started_at);
  }
  // Only as far as it is known to have run.
  const bool known_now = job.state == jobs::State::running || job.state == jobs::State::starting;
  return known_now ? format_duration(now - *job.started_at) : "-";
}

std::string table_text(const Context& context, const std::vector<jobs::Job>& jobs) {
  const std::int64_t now = now_seconds();
  ui::Table table({{"KEY", true},
                   "STATE",
                   "SERVER",
                   {"RANK", true},
                   {"STARTED", true},
                   {"TIME", true},
                   "TAGS",
                   "COMMAND"});
  for (const jobs::Job& job : jobs) {
    const std::int64_t started = job.started_at.value_or(job.created_at);
    jobs::Job brief = job;
    if (brief.reason.starts_with(jobs::no_lifeline)) {
      brief.reason = jobs::no_lifeline;  // the rest is a warning of its own
    }
    table.add({std::to_string(job.key), ui::Cell(state_text(brief), style_of(job.state)), job.server,
               job.rank ? std::to_string(*job.rank) : "", format_duration(now - started) + " ago",
               duration(job, now), join(job.tags, ","), job.command});
  }
  return table.text(context.terminal);
}

std::vector<jobs::Job> wanted(const std::vector<jobs::Job>& all, const Arguments& arguments) {
  JobSelection selection;
  selection.tags = arguments.tags;
  selection.hidden = arguments.hidden;
  return jobs::select(all, selection);
}

// One round: reads the store, asks, brings the logs. With `stopped`, ended jobs are shown too. Jobs that turn
// out to have ended in this very round are shown once more: that is the news.
std::vector<jobs::Job> look(Context& context, jobs::Store& store, const Arguments& arguments) {
  std::vector<jobs::Job> jobs = wanted(stored_jobs(context, store, !arguments.stopped), arguments);
  if (!arguments.offline) {
    jobs = ask_servers(context, store, std::move(jobs));
  }
  if (arguments.rsync) {
    bring_logs(context, store, jobs);
  }
  return jobs;
}

void print(Context& context, const Arguments& arguments, const std::vector<jobs::Job>& jobs) {
  if (context.options.json) {
    context.terminal.out(json_text(jobs));
    return;
  }
  if (jobs.empty()) {
    context.terminal.notice(arguments.stopped ? "no jobs"
                                              : "no unfinished jobs; --stopped lists the others too");
    return;
  }
  context.terminal.out(table_text(context, jobs));
}

int run(Context& context, const Arguments& arguments) {
  jobs::Store store = open_store(context);
  if (!arguments.watch) {
    const std::vector<jobs::Job> jobs = look(context, store, arguments);
    print(context, arguments, jobs);
    warn_of_missing_lifelines(context, jobs);
    return 0;
  }
  const bool screen = context.terminal.stdout_is_terminal() && !context.options.json;
  for (;;) {
    const std::vector<jobs::Job> jobs = look(context, store, arguments);
    if (screen) {
      context.terminal.out("\033[H\033[2J");
    }
    print(context, arguments, jobs);
    pollfd slot{context.cancel.fd(), POLLIN, 0};
    static_cast<void>(::poll(&slot, 1, 2000));
    if (context.cancel.cancelled()) {
      return 130;
    }
  }
}

}  // namespace

void add_job_list(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("job-list", "List jobs, as the servers have them now");
  const auto arguments = std::make_shared<Arguments>();
  command->add_flag("--rsync", arguments->rsync, "Also bring their output into .remote/jobs");
  command->add_flag("--stopped", arguments->stopped, "Ended jobs too");
  command->add_flag("--hidden", arguments->hidden, "Hidden jobs too");
  command->add_flag("--offline", arguments->offline, "Do not ask the servers: what is known here");
  command->add_flag("--watch", arguments->watch, "Show it anew every two seconds, until Ctrl-C");
  add_tag_option(*command, arguments->tags, "Jobs with this tag; with several, jobs that have all");
  command->callback([arguments, &context] { context.exit_code = run(context, *arguments); });
}

}  // namespace remote::cli
