// `remote status`, and `remote` without a command in a project: shows the running jobs, those that have ended
// since the last time, and what to do next.

#include "cli/commands/status.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/next_step.hpp"
#include "cli/options.hpp"
#include "cli/show/job_table.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/waiting.hpp"
#include "jobs/job_json.hpp"

namespace remote::cli {
namespace {

constexpr std::size_t most_shown = 10;  // launches and jobs that are shown

// The unfinished jobs, then the ended ones, each by key; a launch includes its ranks that ended earlier.
std::vector<TableRow> rows_of(Project& project, const ProjectStatus& status) {
  std::vector<Job> jobs = status.unfinished;
  jobs.insert(jobs.end(), status.ended.begin(), status.ended.end());
  const std::size_t news = jobs.size();
  for (Job& job : project.with_launch(jobs)) {
    const auto end = jobs.begin() + static_cast<std::ptrdiff_t>(news);
    if (std::ranges::find(jobs.begin(), end, job.id, &Job::id) == end) {
      jobs.push_back(std::move(job));
    }
  }
  std::ranges::sort(jobs, {}, &Job::key);
  std::vector<TableRow> rows;
  for (Batch& batch : by_launch(jobs)) {
    const bool over = is_over(batch);
    rows.push_back({std::move(batch), over});
  }
  std::ranges::stable_sort(rows, {}, &TableRow::dim);
  return rows;
}

// "2 launches and 1 job": counts those that are over, or the others
std::string counted_launches(const std::vector<TableRow>& rows, bool over) {
  std::size_t launches = 0;
  std::size_t others = 0;
  for (const TableRow& row : rows) {
    if (row.dim == over) {
      ++(row.batch.front().launch ? launches : others);
    }
  }
  const std::string of_launches = counted(launches, "launch");
  if (launches == 0 || others == 0) {
    return launches == 0 ? counted(others, "job") : of_launches;
  }
  return of_launches + " and " + counted(others, "job");
}

nlohmann::ordered_json json_of(const std::vector<Job>& jobs) {
  auto array = nlohmann::ordered_json::array();
  for (const Job& job : jobs) {
    array.push_back(jobs::to_json(job));
  }
  return array;
}

}  // namespace

int show_status(Context& context) {
  Project& project = context.project();
  std::optional<Waiting> waiting(std::in_place, context.terminal, "for servers with jobs");
  const ProjectStatus status = project.status();
  waiting.reset();
  const std::vector<TableRow> rows = rows_of(project, status);
  const std::vector<NextStep> next = next_steps(context, status, rows);
  if (context.options.json) {
    nlohmann::ordered_json json = {{"project", project.name()},
                                   {"folder", project.folder().string()},
                                   {"unfinished", json_of(status.unfinished)},
                                   {"ended", json_of(status.ended)},
                                   {"next", nlohmann::ordered_json::array()}};
    for (const NextStep& one : next) {
      json["next"].push_back({{"command", one.command}, {"why", one.why}});
    }
    context.print(json);
    return 0;
  }
  if (!rows.empty()) {
    std::vector<TableRow> shown = rows;
    // All unfinished rows, and the newest ended ones.
    const auto ended = static_cast<std::size_t>(std::ranges::count_if(rows, &TableRow::dim));
    const std::size_t hidden = ended - std::min(ended, most_shown);
    const auto first = shown.end() - static_cast<std::ptrdiff_t>(ended);
    shown.erase(first, first + static_cast<std::ptrdiff_t>(hidden));
    context.terminal.out(job_table(context, shown, {}));
    if (hidden > 0) {
      context.terminal.notice(fmt::format("{} more that ended: remote job-list --stopped", hidden));
    }
  }
  const bool any_over = std::ranges::any_of(rows, &TableRow::dim);
  const bool idle = status.unfinished.empty();
  context.terminal.notice(
      status.servers == 0
          ? project.name() + ": no servers yet"
          : fmt::format(
                "{}: {} on {}{}{}", project.name(),
                idle ? "nothing started here runs" : counted_launches(rows, false) + " unfinished",
                counted(static_cast<std::size_t>(status.servers), "server"),
                idle ? " (jobs from elsewhere: remote servers)" : "",
                any_over ? fmt::format(", {} ended since last time", counted_launches(rows, true)) : ""));
  for (const std::string& notice : row_notices(rows)) {
    context.terminal.notice(notice);
  }
  for (const NextStep& one : next) {
    context.terminal.notice(fmt::format("{}: {}", one.why, one.command));
  }
  project.status_was_told(status);
  return 0;
}

int show_no_project(Context& context) {
  try {
    Project::find(current_folder());
  } catch (const Error& error) {
    if (context.stream || context.options.quiet) {
      context.show(error);
      return 2;
    }
    context.show(Error::usage(error.what_failed(), error.reason()));  // the next steps replace the hint
  }
  for (const NextStep& step : steps_to_a_project()) {
    context.terminal.notice(fmt::format("{}: {}", step.why, step.command));
  }
  return 2;
}

void add_status(CLI::App& command, Context& context) {
  struct None {};
  arguments_of<None>(command, context, [](Context& given, const None&) { return show_status(given); });
}

}  // namespace remote::cli
