#include "cli/show/sweeps.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "cli/show/job_table.hpp"
#include "cli/show/launches.hpp"
#include "jobs/job_json.hpp"
#include "ui/table.hpp"

namespace remote::cli {
namespace {

std::string number_text(double value) {
  return fmt::format("{:.6g}", value);
}

// "0" or "SIGKILL"; "" if it has not ended.
std::string exit_text(const Job& job) {
  if (!job.result) {
    return "";
  }
  return job.result->signal() ? signal_name(*job.result->signal()) : std::to_string(*job.result->code());
}

// Quotes a cell for CSV, if necessary.
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

struct ResultColumn {
  std::string name;
  bool right = false;  // right-aligned
  std::function<std::string(const Job&)> cell;
};

// The columns of the points, for the table and for CSV.
std::vector<ResultColumn> columns_of(const SweepResults& results, bool csv) {
  const auto head = [&](const char* name) { return csv ? lower_case(name) : name; };
  std::vector<ResultColumn> columns{
      {head("POINT"), true, [](const Job& job) { return std::to_string(job.point->number); }},
      {head("KEY"), true, [](const Job& job) { return std::to_string(job.key); }}};
  for (const std::string& name : results.parameters) {
    columns.push_back({name, false, [&name](const Job& job) {
                         const auto& values = job.point->values;
                         const auto found = std::ranges::find(values, name, &SweepRow::value_type::first);
                         return found == values.end() ? "" : found->second;
                       }});
  }
  columns.push_back({head("STATE"), false, [](const Job& job) { return std::string(to_string(job.state)); }});
  columns.push_back({head("EXIT"), true, exit_text});
  for (const std::string& name : results.numbers) {
    columns.push_back({csv ? name : visible_line(name), true, [&name](const Job& job) {
                         const double* number = sweep_number(job, name);
                         return number == nullptr ? "" : number_text(*number);
                       }});
  }
  columns.push_back({csv ? "seconds" : "TIME", true, [csv](const Job& job) {
                       if (!job.started_at || !job.ended_at) {
                         return std::string();
                       }
                       const std::chrono::seconds seconds = *job.ended_at - *job.started_at;
                       return csv ? std::to_string(seconds.count()) : format_duration(seconds);
                     }});
  columns.push_back(
      {head("SERVER"), false, [](const Job& job) { return job.point->waiting ? "" : job.server; }});
  return columns;
}

}  // namespace

std::string sweep_text(const std::vector<Job>& jobs) {
  return sweep_text(sweep_results(jobs));
}

std::string sweep_text(const SweepResults& results) {
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
                        number_text(*sweep_number(best, results.best_by->name)),
                        visible_line(sweep_point_text(best.point->values), 60));
  }
  return text;
}

std::string filled_command(const Job& job) {
  try {
    return job.point ? fill_sweep_word(job.command, job.point->values) : job.command;
  } catch (const Error&) {  // the recorded parameters do not match the command
    return job.command;
  }
}

std::string plan_text(const Context& context, const SweepPlan& plan) {
  std::vector<ui::Column> columns{{"POINT", true}};
  for (const auto& [name, value] : plan.points.front()) {
    columns.emplace_back(name);
  }
  columns.push_back(ui::Column("COMMAND").yielding());
  ui::Table table(columns);
  for (std::size_t i = 0; i < plan.points.size(); ++i) {
    std::vector<ui::Cell> cells{std::to_string(i)};
    for (const auto& [name, value] : plan.points[i]) {
      cells.emplace_back(value);
    }
    cells.emplace_back(plan.commands[i]);
    table.add(std::move(cells));
  }
  return fmt::format("sweep: {} on {}\n{}", counted(plan.points.size(), "point"), server_names(plan.servers),
                     table.text(context.terminal));
}

nlohmann::ordered_json plan_json(const SweepPlan& plan) {
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < plan.points.size(); ++i) {
    nlohmann::ordered_json values = nlohmann::ordered_json::object();
    for (const auto& [name, value] : plan.points[i]) {
      values[name] = value;
    }
    points.push_back({{"number", i}, {"values", std::move(values)}, {"command", plan.commands[i]}});
  }
  return {{"servers", plan.servers}, {"points", std::move(points)}};
}

std::string results_table(const Context& context, const SweepResults& results) {
  const std::vector<ResultColumn> parts = columns_of(results, false);
  std::vector<ui::Column> columns;
  for (const ResultColumn& part : parts) {
    columns.emplace_back(part.name, part.right);
  }
  columns.back() = std::move(columns.back()).yielding();
  ui::Table table(columns);
  for (std::size_t i = 0; i < results.points.size(); ++i) {
    const Job& job = results.points[i];
    std::vector<ui::Cell> cells;
    for (const ResultColumn& part : parts) {
      ui::Cell& cell = cells.emplace_back(part.cell(job));
      if (results.best == i) {
        cell.style = ui::Style::bold;
      } else if (part.name == "STATE") {
        cell.style = style_of(job.state);
      }
    }
    table.add(std::move(cells));
  }
  return table.text(context.terminal);
}

std::string results_csv(const SweepResults& results) {
  const std::vector<ResultColumn> parts = columns_of(results, true);
  std::string csv;
  const auto add = [&](const auto& text_of) {
    for (const ResultColumn& part : parts) {
      csv += csv_cell(text_of(part)) + (&part == &parts.back() ? "\n" : ",");
    }
  };
  add([](const ResultColumn& part) { return part.name; });
  for (const Job& job : results.points) {
    add([&](const ResultColumn& part) { return part.cell(job); });
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
