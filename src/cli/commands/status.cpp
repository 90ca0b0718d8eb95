// `remote status`, and `remote` alone in a project: what runs, what ended since the last time, and what to do
// next.

#include "cli/commands/status.hpp"

#include <algorithm>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/strings.hpp"
#include "cli/options.hpp"
#include "cli/show/job_table.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "jobs/job_json.hpp"
#include "jobs/verdict.hpp"

namespace remote::cli {
namespace {

// A command, and what it is for.
struct Advice {
  std::string why;
  std::string command;
};

// `rows`: as they are shown, dim where nothing of it lives.
std::vector<Advice> advice(Context& context, const ProjectStatus& status, const std::vector<TableRow>& rows) {
  std::vector<Advice> all;
  if (status.servers == 0) {
    return {{"for practice servers (or add your own to .remote/configs.yaml)", "remote sandbox up"}};
  }
  const auto runs = [](const Job& job) {
    return job.state == JobState::queued || job.state == JobState::starting || job.state == JobState::running;
  };
  const auto newest = std::ranges::find_if(
      rows.rbegin(), rows.rend(), [&](const TableRow& row) { return std::ranges::any_of(row.batch, runs); });
  const bool idle = status.unfinished.empty();
  if (std::ranges::find(status.unfinished, JobState::unknown, &Job::state) != status.unfinished.end()) {
    all.push_back({"to see which servers answer", "remote servers"});
  }
  if (newest != rows.rend()) {
    const Job& job = first_rank(newest->batch);
    all.push_back({job.rank ? "to follow rank 0" : "to follow it",
                   fmt::format("remote job-tail --{} {}", job.launch ? "launch" : "job", job.key)});
  }
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    // The job whose end explains those of the others.
    if (const auto failed = jobs::verdict_of(row->batch).first) {
      all.push_back({fmt::format("to see why {} failed", describe(*failed)),
                     fmt::format("remote job-tail --job {}", failed->key)});
      break;
    }
  }
  if (idle && !status.sent && !status.any_job) {
    all.push_back({"to make the servers ready", "remote prepare"});
  } else if (idle) {
    const bool usual = context.project().launch_defaults().command.has_value();
    all.push_back({"to train", usual ? "remote torch-launch" : "remote torch-launch --rsync -- train.py"});
  }
  return all;
}

// What runs, and then what ended, each by key.
std::vector<TableRow> rows_of(const ProjectStatus& status) {
  std::vector<Job> jobs = status.unfinished;
  jobs.insert(jobs.end(), status.ended.begin(), status.ended.end());
  std::ranges::sort(jobs, {}, &Job::key);
  std::vector<TableRow> rows;
  for (Batch& batch : by_launch(jobs)) {
    const bool over = is_over(batch);
    rows.push_back({std::move(batch), over});
  }
  std::ranges::stable_sort(rows, {}, &TableRow::dim);
  return rows;
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
  const ProjectStatus status = project.status();
  const std::vector<TableRow> rows = rows_of(status);
  const std::vector<Advice> next = advice(context, status, rows);
  if (context.options.json) {
    nlohmann::ordered_json json = {{"project", project.name()},
                                   {"folder", project.folder().string()},
                                   {"unfinished", json_of(status.unfinished)},
                                   {"ended", json_of(status.ended)},
                                   {"next", nlohmann::ordered_json::array()}};
    for (const Advice& one : next) {
      json["next"].push_back({{"command", one.command}, {"why", one.why}});
    }
    context.print(json);
    return 0;
  }
  if (!rows.empty()) {
    context.terminal.out(job_table(context, rows, {}));
  }
  context.terminal.notice(fmt::format(
      "{}: {} on {}{}", project.name(),
      status.unfinished.empty() ? "nothing runs" : counted(status.unfinished.size(), "unfinished job"),
      counted(static_cast<std::size_t>(status.servers), "server"),
      status.ended.empty()
          ? ""
          : fmt::format(", {} ended since the last time", counted(status.ended.size(), "job"))));
  for (const Advice& one : next) {
    context.terminal.notice(fmt::format("{}: {}", one.why, one.command));
  }
  project.status_was_told(status);
  return 0;
}

void add_status(CLI::App& app, Context& context) {
  struct None {};
  add_command<None>(app, context, "status",
                    "Show what runs, what ended since the last time, and what to do next",
                    [](Context& given, const None&) { return show_status(given); });
}

}  // namespace remote::cli
