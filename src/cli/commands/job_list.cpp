// `remote job-list`: the jobs of the project, after asking the servers of the unfinished ones.

#include <CLI/App.hpp>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/show/jobs.hpp"
#include "ui/table.hpp"

namespace remote::cli {
namespace {

struct Arguments {
  bool rsync = false;
  bool stopped = false;
  bool hidden = false;
  bool offline = false;
  bool watch = false;
  int patience = 3;
  std::vector<std::string> tags;
};

ui::Style style_of(JobState state) {
  switch (state) {
    case JobState::running:
      return ui::Style::green;
    case JobState::failed:
    case JobState::lost:
      return ui::Style::red;
    case JobState::killed:
      return ui::Style::magenta;
    case JobState::succeeded:
      return ui::Style::plain;
    default:
      return ui::Style::yellow;  // it is not known yet how it goes
  }
}

// How long it ran, or runs.
std::string duration(const Job& job, std::int64_t now) {
  if (!job.started_at) {
    return "-";
  }
  if (job.ended_at) {
    return format_duration(*job.ended_at - *job.started_at);
  }
  // Of a job that does not answer it is not known how long it ran.
  const bool known_now = job.state == JobState::running || job.state == JobState::starting;
  return known_now ? format_duration(now - *job.started_at) : "-";
}

std::string table_text(const Context& context, const std::vector<Job>& jobs) {
  const std::int64_t now = now_seconds();
  ui::Table table({{"KEY", true},
                   "STATE",
                   "SERVER",
                   {"RANK", true},
                   {"STARTED", true},
                   {"TIME", true},
                   "TAGS",
                   "COMMAND"});
  for (const Job& job : jobs) {
    const std::int64_t started = job.started_at.value_or(job.created_at);
    Job brief = job;
    // why is a warning of its own
    if (brief.reason.kind == JobReason::Kind::no_lifeline ||
        brief.reason.kind == JobReason::Kind::lifeline_dead) {
      brief.reason = {.kind = JobReason::Kind::other, .text = "no lifeline"};
    } else if (brief.reason.kind == JobReason::Kind::lifeline_restarted) {
      brief.reason = {.kind = JobReason::Kind::other, .text = "lifeline restarted"};
    }
    table.add({std::to_string(job.key), ui::Cell(state_text(brief), style_of(job.state)), job.server,
               job.rank ? std::to_string(*job.rank) : "", format_duration(now - started) + " ago",
               duration(job, now), join(job.tags, ","), job.command});
  }
  return table.text(context.terminal);
}

// Jobs that turn out to have ended in this very round are shown once more: that is the news.
std::vector<Job> look(Context& context, const Arguments& arguments) {
  JobsRequest request;
  request.selection.tags = arguments.tags;
  request.selection.hidden = arguments.hidden;
  request.unfinished_only = !arguments.stopped;
  request.ask = !arguments.offline;
  request.patience = std::chrono::seconds(arguments.patience);
  std::vector<Job> jobs = context.project().jobs(request);
  if (arguments.rsync) {
    context.show(context.project().fetch_logs(jobs));
  }
  return jobs;
}

void print(Context& context, const Arguments& arguments, const std::vector<Job>& jobs) {
  if (context.options.json) {
    context.terminal.out(jobs_json(jobs));
  } else if (jobs.empty()) {
    context.terminal.notice(arguments.stopped ? "no jobs"
                                              : "no unfinished jobs; --stopped lists the others too");
  } else {
    context.terminal.out(table_text(context, jobs));
  }
}

int watch(Context& context, const Arguments& arguments) {
  const bool screen = context.terminal.stdout_is_terminal() && !context.options.json;
  for (;;) {
    const std::vector<Job> jobs = look(context, arguments);
    if (screen) {
      context.terminal.out("\033[H\033[2J");
    }
    print(context, arguments, jobs);
    context.pause(std::chrono::seconds(2));
  }
}

int run(Context& context, const Arguments& arguments) {
  // What is wrong with a launch is reported below the table, once.
  std::vector<Event> notes;
  context.on_event = [&](const Event& event) {
    if (std::holds_alternative<NoLifeline>(event)) {
      notes.push_back(event);
    } else {
      context.show(event);
    }
  };
  if (arguments.watch) {
    return watch(context, arguments);
  }
  print(context, arguments, look(context, arguments));
  for (const Event& note : notes) {
    context.show(note);
  }
  return 0;
}

}  // namespace

void add_job_list(CLI::App& app, Context& context) {
  const auto [command, arguments] =
      add_command(app, context, "job-list", "List jobs, as the servers have them now", run);
  command.add_flag("--rsync", arguments.rsync, "Also bring their output into .remote/jobs");
  command.add_flag("--stopped", arguments.stopped, "Ended jobs too");
  command.add_flag("--hidden", arguments.hidden, "Hidden jobs too");
  command.add_flag("--offline", arguments.offline, "Do not ask the servers: what is known here");
  command.add_flag("--watch", arguments.watch, "Show it anew every two seconds, until Ctrl-C");
  add_number_option(command, "--patience", arguments.patience,
                    "Seconds that a server may take to connect, and be silent (default: 3)", "SECONDS", 1,
                    3600);
  add_tag_option(command, context, arguments.tags, "Jobs with this tag; with several, jobs that have all");
}

}  // namespace remote::cli
