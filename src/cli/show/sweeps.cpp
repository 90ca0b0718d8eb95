#include "cli/show/sweeps.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "cli/show/job_table.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "jobs/job_json.hpp"
#include "ui/table.hpp"

namespace remote::cli {
namespace {

std::string number_text(double value) {
  return fmt::format("{:.6g}", value);
}

std::optional<double> number_of(const Job& job, const std::string& name) {
  const auto found = std::ranges::find(job.point->numbers, name, &NamedNumber::name);
  return found == job.point->numbers.end() ? std::nullopt : std::optional(found->value);
}

std::string value_of(const Job& job, const std::string& parameter) {
  const auto found = std::ranges::find(job.point->values, parameter, &SweepRow::value_type::first);
  return found == job.point->values.end() ? "" : found->second;
}

std::optional<std::int64_t> seconds_of(const Job& job) {
  return job.started_at && job.ended_at ? std::optional(*job.ended_at - *job.started_at) : std::nullopt;
}

// "0" or "SIGKILL"; "" where it has not ended.
std::string exit_text(const Job& job) {
  if (!job.result) {
    return "";
  }
  return job.result->signal() ? signal_name(*job.result->signal()) : std::to_string(*job.result->code());
}

// A cell of CSV.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

// What tables and CSV have of a point, but for its number.
std::vector<std::string> cells_of(const SweepResults& results, const Job& job) {
  std::vector<std::string> cells;
  for (const std::string& name : results.parameters) {
    cells.push_back(value_of(job, name));
  }
  cells.emplace_back(to_string(job.state));
  cells.push_back(exit_text(job));
  for (const std::string& name : results.numbers) {
    const auto number = number_of(job, name);
    cells.push_back(number ? number_text(*number) : "");
  }
  return cells;
}

}  // namespace

std::string sweep_text(const std::vector<Job>& jobs) {
  const SweepResults results = sweep_results(jobs);
  std::map<JobState, std::size_t> counts;
  for (const Job& job : results.points) {
    ++counts[job.state];
  }
  const std::size_t failed = counts[JobState::failed] + counts[JobState::lost];
  std::string text =
      fmt::format("{} of {} done", counts[JobState::succeeded] + failed + counts[JobState::killed],
                  results.points.size());
  const auto add = [&](std::size_t count, const char* word) {
    text += count > 0 ? fmt::format(", {} {}", count, word) : "";
  };
  add(failed, "failed");
  add(counts[JobState::killed], "killed");
  add(counts[JobState::unknown], "unknown");
  if (results.best) {
    const Job& best = results.points[*results.best];
    text += fmt::format(", best {} {} at {}", visible_line(results.best_by->name),
                        number_text(*number_of(best, results.best_by->name)),
                        visible_line(sweep_point_text(best.point->values), 60));
  }
  return text;
}

std::string results_table(const Context& context, const SweepResults& results) {
  std::vector<ui::Column> columns{{"POINT", true}, {"KEY", true}};
  for (const std::string& name : results.parameters) {
    columns.emplace_back(name);
  }
  columns.insert(columns.end(), {ui::Column("STATE"), {"EXIT", true}});
  for (const std::string& name : results.numbers) {
    columns.emplace_back(visible_line(name), true);
  }
  columns.insert(columns.end(), {ui::Column("TIME", true), ui::Column("SERVER").yielding()});
  ui::Table table(columns);
  for (std::size_t i = 0; i < results.points.size(); ++i) {
    const Job& job = results.points[i];
    const auto seconds = seconds_of(job);
    std::vector<ui::Cell> cells{std::to_string(job.point->number), std::to_string(job.key)};
    for (const std::string& cell : cells_of(results, job)) {
      cells.emplace_back(cell);
    }
    cells[2 + results.parameters.size()].style = style_of(job.state);
    cells.emplace_back(seconds ? format_duration(*seconds) : "");
    cells.emplace_back(job.point->waiting ? "" : job.server);
    if (results.best == i) {
      for (ui::Cell& cell : cells) {
        cell.style = ui::Style::bold;
      }
    }
    table.add(std::move(cells));
  }
  return table.text(context.terminal);
}

std::string results_csv(const SweepResults& results) {
  std::vector<std::string> head{"point", "key"};
  head.insert(head.end(), results.parameters.begin(), results.parameters.end());
  head.insert(head.end(), {"state", "exit"});
  head.insert(head.end(), results.numbers.begin(), results.numbers.end());
  head.insert(head.end(), {"seconds", "server"});
  std::string csv;
  const auto add = [&](std::vector<std::string> cells) {
    std::ranges::transform(cells, cells.begin(), csv_cell);
    csv += join(cells, ",") + "\n";
  };
  add(head);
  for (const Job& job : results.points) {
    const auto seconds = seconds_of(job);
    std::vector<std::string> cells{std::to_string(job.point->number), std::to_string(job.key)};
    const std::vector<std::string> own = cells_of(results, job);
    cells.insert(cells.end(), own.begin(), own.end());
    cells.push_back(seconds ? std::to_string(*seconds) : "");
    cells.push_back(job.point->waiting ? "" : job.server);
    add(std::move(cells));
  }
  return csv;
}

nlohmann::ordered_json results_json(const SweepResults& results) {
  nlohmann::ordered_json json{{"launch", results.launch.text()},
                              {"parameters", results.parameters},
                              {"numbers", results.numbers},
                              {"best_by", nullptr},
                              {"best", nullptr},
                              {"points", nlohmann::ordered_json::array()}};
  if (results.best_by) {
    json["best_by"] = {{"name", results.best_by->name}, {"lowest", results.best_by->lowest}};
  }
  if (results.best) {
    json["best"] = results.points[*results.best].point->number;
  }
  for (const Job& job : results.points) {
    json["points"].push_back(jobs::to_json(job));
  }
  return json;
}

}  // namespace remote::cli
