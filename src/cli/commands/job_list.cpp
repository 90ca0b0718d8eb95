// `remote job-list`: lists the jobs of the project, after asking the servers of unfinished ones.

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <remote/history.hpp>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "cli/markdown.hpp"
#include "cli/options.hpp"
#include "cli/show/job_table.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/waiting.hpp"
#include "ui/full_screen.hpp"

namespace remote::cli {
namespace {

struct ListArguments {
  bool rsync = false;
  bool stopped = false;
  bool failed = false;
  bool hidden = false;
  bool offline = false;
  bool watch = false;
  JobOptions jobs;
  int patience = 3;
  TableOptions table;

  // Whether it lists all matching jobs, not only the unfinished and recently ended ones.
  bool all() const { return stopped || failed || jobs.by_name(); }
};

// Limits for the recently ended launches and jobs that are listed.
constexpr std::chrono::hours lately{24};
constexpr std::size_t most_ended = 10;

struct Listing {
  std::vector<Job> jobs;       // for JSON
  std::vector<TableRow> rows;  // by key
  std::size_t earlier = 0;     // number of ended launches and jobs without a row
  bool lacks_logs = false;     // with --rsync: not all of them could be copied
};

// Drops ended ones, unless they ended recently, or their end was not known here before.
void leave_the_recent(Listing& listing) {
  const auto is_news = [&](const Batch& batch) {
    return std::ranges::any_of(batch, [&](const Job& job) {
      return std::ranges::find(listing.jobs, job.id, &Job::id) != listing.jobs.end();
    });
  };
  std::vector<Instant> ends;
  for (const TableRow& row : listing.rows) {
    if (row.dim && end_of(row.batch) >= now_seconds() - lately) {
      ends.push_back(end_of(row.batch));
    }
  }
  std::ranges::sort(ends, std::greater());
  const Instant oldest = ends.size() > most_ended ? ends[most_ended - 1] : now_seconds() - lately;
  listing.earlier += std::erase_if(listing.rows, [&](const TableRow& row) {
    return row.dim && end_of(row.batch) < oldest && !is_news(row.batch);
  });
}

std::vector<TableRow> rank_rows(const std::vector<TableRow>& rows) {
  std::vector<TableRow> all;
  for (const TableRow& row : rows) {
    for (const Job& job : row.batch) {
      all.push_back({{job}, row.dim});
    }
  }
  return all;
}

// The matching jobs, from the records here: the unfinished and the recently ended. Sets `earlier` to the
// number of other launches and jobs.
std::vector<Job> stored_lately(Project& project, JobsRequest request, std::size_t& earlier) {
  request.unfinished_only = false;
  request.ask = false;
  request.lately = EndedLately{.since = now_seconds() - lately, .most = most_ended, .earlier = &earlier};
  return project.jobs(request);
}

// The stored jobs, updated with the answers of their servers, by key.
std::vector<Job> with_answers(const std::vector<Job>& stored, const std::vector<Job>& asked) {
  std::map<std::pair<int, JobId>, Job> all;
  for (const auto* jobs : {&stored, &asked}) {
    for (const Job& job : *jobs) {
      all.insert_or_assign({job.key, job.id}, job);
    }
  }
  std::vector<Job> jobs;
  std::ranges::transform(all, std::back_inserter(jobs), [](const auto& entry) { return entry.second; });
  return jobs;
}

Listing look(Context& context, const ListArguments& arguments) {
  Project& project = context.project();
  JobsRequest request;
  request.selection = arguments.jobs.selection();
  request.selection.hidden = arguments.hidden;
  request.unfinished_only = !arguments.all();
  request.ask = !arguments.offline;
  request.patience = std::chrono::seconds(arguments.patience);
  Listing listing;
  // If nothing is unfinished, the records here are sufficient.
  const bool recent = !arguments.all() && !context.options.json;
  const std::vector<Job> stored =
      recent ? stored_lately(project, request, listing.earlier) : std::vector<Job>();
  if (!recent || !std::ranges::all_of(stored, [](const Job& job) { return is_over(job); }) ||
      History(project.folder()).has_open()) {
    listing.jobs = project.jobs(request);
  }
  if (arguments.failed) {
    std::vector<Batch> batches = by_launch(listing.jobs);
    std::erase_if(batches, [](const Batch& batch) {
      return std::ranges::none_of(
          batch, [](const Job& job) { return job.state == JobState::failed || job.state == JobState::lost; });
    });
    listing.jobs.clear();
    for (const Batch& batch : batches) {
      listing.jobs.insert(listing.jobs.end(), batch.begin(), batch.end());
    }
  }
  const auto bring_logs = [&](const std::vector<Job>& jobs) {
    const std::vector<Error> errors = arguments.rsync ? project.fetch_logs(jobs) : std::vector<Error>();
    context.show(errors);
    listing.lacks_logs = !errors.empty();
  };
  if (context.options.json) {
    bring_logs(listing.jobs);
    return listing;
  }
  const std::vector<Job> shown = recent ? with_answers(stored, listing.jobs) : listing.jobs;
  for (Batch& batch : by_launch(shown)) {
    const bool dim = !arguments.all() && is_over(batch);
    listing.rows.push_back({std::move(batch), dim});
  }
  if (!arguments.all()) {
    leave_the_recent(listing);
  }
  std::vector<Job> listed;
  for (const TableRow& row : listing.rows) {
    listed.insert(listed.end(), row.batch.begin(), row.batch.end());
  }
  bring_logs(listed);
  if (arguments.table.ranks) {
    listing.rows = rank_rows(listing.rows);
  }
  return listing;
}

std::string footer(const Listing& listing) {
  if (listing.earlier > 0) {
    return fmt::format("{}{} that ended earlier; --stopped lists {}", listing.earlier,
                       listing.rows.empty() ? "" : " more", listing.earlier == 1 ? "it" : "all");
  }
  return listing.rows.empty() ? "no jobs" : "";
}

void print(Context& context, const ListArguments& arguments, const Listing& listing) {
  if (context.options.json) {
    context.print(jobs_json(listing.jobs));
    return;
  }
  if (!listing.rows.empty()) {
    context.terminal.out(job_table(context, listing.rows, arguments.table));
  }
  if (const std::string text = footer(listing); !text.empty()) {
    context.terminal.notice(text);
  }
  if (!arguments.table.ranks) {
    for (const std::string& notice : row_notices(listing.rows)) {
      context.terminal.notice(notice);
    }
  }
}

// A live screen. Shows events below the table.
[[noreturn]] void watch_on_screen(Context& context, const ListArguments& arguments) {
  std::string notes;
  Listing listing = look(context, arguments);  // ask for passwords before the screen is drawn
  context.on_event = [&](const Event& event) {
    notes += context.terminal.captured([&] { context.show(event); });
  };
  context.terminal.set_cancel(context.cancel);  // a terminal that blocks must not delay Ctrl-C
  ui::FullScreen screen(context.terminal.out_descriptor());
  for (;;) {
    // Unfinished ones first, then newest first, because a small window only shows the first lines.
    std::ranges::stable_sort(listing.rows, std::greater(),
                             [](const TableRow& row) { return std::pair(!row.dim, row.batch.front().key); });
    std::string text = context.terminal.paint_out(
        ui::Style::bold, ui::shorten(fmt::format("remote job-list --watch   {}   {}   Ctrl-C ends it",
                                                 context.project().name(), format_local_time(now_seconds())),
                                     context.terminal.columns()));
    text += "\n\n" + (listing.rows.empty() ? "" : job_table(context, listing.rows, arguments.table));
    if (const std::string below = footer(listing); !below.empty()) {
      text += context.terminal.paint_out(ui::Style::dim, below) + "\n";
    }
    for (const std::string& notice : row_notices(listing.rows)) {
      text += wrapped(notice, 0, context.terminal.columns()) + "\n";
    }
    std::vector<std::string> lines = split(text + notes, '\n');
    lines.pop_back();  // the empty text after the last newline
    screen.enter();
    context.terminal.out(ui::FullScreen::frame(lines, context.terminal.rows()));
    context.pause(std::chrono::seconds(2));
    notes.clear();
    listing = look(context, arguments);
  }
}

[[noreturn]] void watch(Context& context, const ListArguments& arguments) {
  context.when_interrupted.reset();
  if (context.terminal.stdout_is_terminal() && !context.options.json && context.options.verbose == 0) {
    watch_on_screen(context, arguments);
  }
  for (;;) {
    print(context, arguments, look(context, arguments));
    context.pause(std::chrono::seconds(2));
  }
}

int run_list(Context& context, const ListArguments& arguments) {
  // Problems of launches are reported below the table, once.
  std::vector<Event> notes;
  context.on_event = [&](const Event& event) {
    if (std::holds_alternative<NoLifeline>(event) || std::holds_alternative<SweepTrouble>(event)) {
      notes.push_back(event);
    } else {
      context.show(event);
    }
  };
  if (arguments.watch) {
    watch(context, arguments);
  }
  std::optional<Waiting> waiting(std::in_place, context.terminal, "for servers with jobs");
  const Listing listing = look(context, arguments);
  waiting.reset();
  print(context, arguments, listing);
  for (const Event& note : notes) {
    context.show(note);
  }
  return listing.lacks_logs ? 1 : 0;
}

}  // namespace

void add_job_list(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_list);
  arguments.jobs.add(command, context);
  arguments.jobs.add_words(command, context);
  command.add_flag("--ranks", arguments.table.ranks, "A row for each rank of a launch");
  command.add_flag("--ids", arguments.table.ids, "Show the start of each id");
  command.add_flag("-a,--all,--stopped", arguments.stopped,
                   "All finished jobs too (default: those of the last day; none in JSON)");
  command.add_flag("--failed", arguments.failed, "Only launches and jobs that failed");
  command.add_flag("--hidden", arguments.hidden, "Show hidden jobs too");
  command.add_flag("--offline", arguments.offline, "Do not ask the servers");
  command.add_flag("--watch", arguments.watch, "Refresh every two seconds, until Ctrl-C");
  command.add_flag("--rsync", arguments.rsync, "Also copy their logs into .remote/jobs");
  add_number_option(command, "--patience", arguments.patience, "Seconds to wait for a server (default: 3)",
                    "SECONDS", 1, 3600);
}

}  // namespace remote::cli
