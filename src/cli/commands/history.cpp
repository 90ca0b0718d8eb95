// `remote history`, `show` and `note`: recorded launches.

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <remote/history.hpp>
#include <remote/verdict.hpp>

#include "base/clock.hpp"
#include "base/ranges.hpp"
#include "base/strings.hpp"
#include "cli/commands/ends.hpp"
#include "cli/options.hpp"
#include "cli/show/job_table.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/sweeps.hpp"
#include "cli/show/verdict.hpp"
#include "config/config.hpp"
#include "jobs/job_json.hpp"
#include "project/server_setup.hpp"
#include "ui/table.hpp"

namespace remote::cli {
namespace {

struct HistoryArguments {
  std::vector<std::string> tags;
  bool failed = false;
  bool offline = false;
  std::string since;
  std::string sort;
  std::vector<std::string> columns;
};

std::string state_of(const LaunchSummary& launch) {
  const std::string state(to_string(launch.state));
  const std::string result = launch.result ? " " + launch.result->describe() : "";
  if (!launch.failed_rank || launch.ranks == 1) {
    return launch.state == JobState::failed ? state + result : state;
  }
  const std::string rank = fmt::format("rank {}", *launch.failed_rank);
  if (!is_final(launch.state)) {
    return fmt::format("{}; {} {}", state, rank, result.empty() ? "lost" : "failed" + result);
  }
  return fmt::format("{} {}{}", rank, state, launch.state == JobState::failed ? result : "");
}

std::string took(const LaunchSummary& launch) {
  return launch.first_key == 0 || launch.state == JobState::unknown
             ? "-"
             : format_duration(launch.ended_at.value_or(now_seconds()) - launch.began_at);
}

constexpr std::array property_columns{"commit", "servers", "ranks", "tags", "note"};

// The value in a column: a property of the launch or, for other names, the last number with that name.
std::string cell_of(const LaunchSummary& launch, const std::string& column) {
  if (column == "note") {
    return launch.note;
  }
  if (column == "tags") {
    return join(given_tags(launch.tags, launch.command), ",");
  }
  if (column == "commit") {
    return launch.commit.empty() ? "" : launch.commit.substr(0, 8) + (launch.clean ? "" : "+");
  }
  if (column == "servers") {
    return server_names(launch.servers);
  }
  if (column == "ranks") {
    return std::to_string(launch.ranks);
  }
  const auto found = std::ranges::find(launch.numbers, column, &NamedNumber::name);
  return found == launch.numbers.end() ? "" : fmt::format("{:.6g}", found->value);
}

// The names of the numbers that recorded launches have printed.
std::set<std::string> printed_numbers(const History& history) {
  std::set<std::string> names;
  for (const LaunchSummary& launch : history.list()) {
    std::ranges::transform(launch.numbers, std::inserter(names, names.end()), &NamedNumber::name);
  }
  return names;
}

// Throws Error for a name that is neither in `others` nor in `numbers`.
void check_columns(const std::set<std::string>& numbers, const std::vector<std::string>& names,
                   std::vector<std::string> others) {
  const auto known = [&](const std::string& name) {
    return numbers.contains(name) || std::ranges::find(others, name) != others.end();
  };
  const auto unknown = std::ranges::find_if_not(names, known);
  if (unknown == names.end()) {
    return;
  }
  std::ranges::copy(numbers, std::back_inserter(others));
  throw Error::usage(fmt::format("no launch on record has printed a number '{}'", visible_line(*unknown, 60)),
                     "",
                     others.empty() ? "no launch has printed any: print one, such as loss 0.25"
                                    : "there are " + visible_line(join(others, ", "), 300));
}

// The default columns: the two most common numbers of the launches, losses first, without counters.
std::vector<std::string> usual_columns(const std::vector<LaunchSummary>& launches) {
  std::map<std::string, int> counts;
  for (const LaunchSummary& launch : launches) {
    for (const NamedNumber& number : launch.numbers) {
      ++counts[number.name];
    }
  }
  std::vector<std::tuple<bool, bool, int, std::string>> order;
  for (const auto& [name, count] : counts) {
    if (name != "step" && name != "epoch" && name != "lr") {
      order.emplace_back(name == "loss", name.find("loss") != std::string::npos, count, name);
    }
  }
  std::ranges::sort(order, std::greater());
  std::vector<std::string> columns;
  for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 2); ++i) {
    columns.push_back(std::get<std::string>(order[i]));
  }
  return columns;
}

// The title of a column. The name of a number may be any text that a server sent.
std::string title_of(const std::string& name) {
  std::string text = visible_line(name);
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return text;
}

std::string history_table(const Context& context, const std::vector<LaunchSummary>& launches,
                          const std::vector<std::string>& columns) {
  const auto some = [&](const auto& member) {
    return std::ranges::any_of(launches, [&](const LaunchSummary& one) { return !(one.*member).empty(); });
  };
  const bool names = some(&LaunchSummary::name);
  const bool notes = some(&LaunchSummary::note) && std::ranges::find(columns, "note") == columns.end();
  std::vector<ui::Column> heads{ui::Column("KEY", true).uncut()};
  if (names) {
    heads.emplace_back("NAME");
  }
  heads.insert(heads.end(), {ui::Column("STATE").whole(), {"STARTED", true}, {"TIME", true}});
  for (const std::string& column : columns) {
    heads.emplace_back(title_of(column), column != "note" && column != "tags" && column != "servers");
  }
  if (notes) {
    heads.push_back(ui::Column("NOTE").yielding());
  }
  heads.push_back(ui::Column("COMMAND").yielding().elided());
  ui::Table table(heads);
  const Instant now = now_seconds();
  for (const LaunchSummary& launch : launches) {
    std::vector<ui::Cell> cells{keys_of(launch)};
    if (names) {
      cells.emplace_back(launch.name);
    }
    cells.insert(cells.end(), {ui::Cell(state_of(launch), style_of(launch.state)),
                               rough_duration(now - launch.began_at) + " ago", took(launch)});
    for (const std::string& column : columns) {
      cells.emplace_back(cell_of(launch, column));
    }
    if (notes) {
      cells.emplace_back(launch.note);
    }
    cells.emplace_back(launch.command);
    table.add(std::move(cells));
  }
  return table.text(context.terminal);
}

int run_history(Context& context, const HistoryArguments& arguments) {
  HistoryRequest request{.tags = arguments.tags, .failed = arguments.failed, .sort = arguments.sort};
  if (!arguments.since.empty()) {
    request.since = parse_since(arguments.since);
  }
  const History history = arguments.offline ? History(context.project().folder()) : asked_history(context);
  std::vector<std::string> problems;
  const std::vector<LaunchSummary> launches = history.list(request, &problems);
  std::vector<std::string> columns = config::split_names(arguments.columns);
  std::ranges::transform(columns, columns.begin(), lower_case);
  for (const std::string& problem : problems) {
    context.terminal.warning(visible_line(problem));
  }
  if (!launches.empty() && (!columns.empty() || !request.sort.empty())) {
    const std::set<std::string> numbers = printed_numbers(history);
    check_columns(numbers, columns, {property_columns.begin(), property_columns.end()});
    if (!request.sort.empty()) {
      check_columns(numbers, {lower_case(request.sort)}, {});
    }
  }
  if (context.options.json) {
    auto all = nlohmann::ordered_json::array();
    for (const LaunchSummary& launch : launches) {
      all.push_back(jobs::to_json(launch));
    }
    context.print(all);
    return 0;
  }
  if (launches.empty()) {
    const bool all = request.tags.empty() && !request.failed && !request.since;
    context.terminal.notice(all ? "no launches on record" : "no launch on record matches");
    return 0;
  }
  if (columns.empty()) {
    columns = history.columns();
  }
  context.terminal.out(history_table(context, launches, columns.empty() ? usual_columns(launches) : columns));
  return 0;
}

// ---- show

// Adds a line to the output of `show`, unless `value` is empty.
void put(std::string& text, const char* name, const std::string& value) {
  text += value.empty() ? "" : fmt::format("{:<10} {}\n", name, visible_line(value));
}

std::string code_text(const PastLaunch& record) {
  if (record.commit.empty()) {
    return "";
  }
  const auto untracked = static_cast<std::size_t>(record.untracked);
  return record.commit.substr(0, 12) + (record.branch.empty() ? "" : " on " + record.branch) +
         (record.clean ? ", clean" : ", changed") +
         (record.changed_in.empty() ? "" : " (in " + join(record.changed_in, ", ") + ")") +
         (untracked > 0 ? ", " + counted(untracked, "untracked file") : "");
}

// A table of its servers' facts, with one row per server.
std::string servers_table(const Context& context, const PastLaunch& record) {
  std::vector<ui::Column> heads{"SERVER"};
  std::vector<std::string> names;
  for (const ServerSetup& server : record.beginning.servers) {
    for (const auto& [name, value] : server.facts) {
      if (std::ranges::find(names, name) == names.end()) {
        names.push_back(name);
        heads.push_back(ui::Column(title_of(name)).yielding());
      }
    }
  }
  ui::Table table(heads);
  for (const ServerSetup& server : record.beginning.servers) {
    std::vector<ui::Cell> cells{server.server};
    for (const std::string& name : names) {
      const std::string value = project::find_fact(server, name);
      cells.emplace_back(name == "code" || name == "tree" ? value.substr(0, 12) : value);
    }
    table.add(std::move(cells));
  }
  return table.text(context.terminal);
}

// The servers that do not answer, with the time of their last report; "" if none.
std::string silent_servers(const PastLaunch& record, const Verdict& verdict) {
  std::map<std::string, std::optional<Instant>> reports;
  for (const Job& job : record.jobs) {
    const bool is_gone =
        record.ended_at && record.gone && verdict.first && verdict.first->server == job.server;
    if (is_gone || job.state == JobState::unknown) {
      reports[job.server] = std::max(reports[job.server], job.checked_at);
    }
  }
  std::vector<std::string> texts;
  for (const auto& [server, report] : reports) {
    const std::string since = report ? "since " + format_local_time(*report) : "so far";
    texts.push_back(record.ended_at ? fmt::format("{} has not reported {}: {}", server, since, why_silent)
                                    : fmt::format("{} has not answered {}", server, since));
  }
  return join(texts, "; ");
}

std::string record_text(const Context& context, const PastLaunch& record) {
  const Verdict verdict = verdict_of(record.jobs);
  std::string text;
  put(text, "launch", keys_of(record) + (record.name.empty() ? "" : "  " + record.name));
  put(text, "note", record.note);
  put(text, "state", std::string(to_string(record.state)));
  const bool is_sweep = !record.jobs.empty() && record.jobs.front().point;
  if (is_sweep) {
    put(text, "", sweep_text(record.jobs));
  } else if (record.ended_at && record.state != JobState::succeeded) {
    put(text, "", verdict_headline(verdict));
    put(text, "", aftermath(verdict));
  }
  put(text, "", silent_servers(record, verdict));
  put(text, "command", record.command);
  put(text, "launcher",
      fmt::format("{}, {}; remote {}", to_string(record.beginning.launcher),
                  counted(static_cast<std::size_t>(record.ranks), is_sweep ? "point" : "rank"),
                  record.version));
  put(text, "tags", join(given_tags(record.tags, record.command), ", "));
  put(text, "variables", join(record.variables, ", "));
  put(text, "began", format_local_time(record.began_at));
  put(text, "ended",
      record.ended_at ? fmt::format("{}, after {}", format_local_time(*record.ended_at), took(record)) : "");
  for (const Attempt& attempt : verdict.attempts) {
    put(text, attempt.number == verdict.attempts.front().number ? "attempts" : "", attempt_text(attempt));
  }
  if (const std::string why = no_restart_text(verdict); record.ended_at && !why.empty()) {
    put(text, "restarts", "not started again: " + why);
  }
  put(text, "notify", record.news);
  put(text, "code", code_text(record));
  put(text, "patch", record.patch.lexically_proximate(current_folder()).string());
  std::vector<std::string> numbers;
  for (const NamedNumber& number : record.numbers) {
    numbers.push_back(fmt::format("{} {:.6g}", number.name, number.value));
  }
  put(text, "numbers", join(numbers, ", "));
  text += "\n" + servers_table(context, record);
  std::vector<TableRow> rows;
  for (const Job& job : record.jobs) {
    rows.push_back({{job}, true});
  }
  if (!rows.empty()) {
    text += "\n" + job_table(context, rows, {.ranks = true, .past = true});
  }
  if (!record.last_lines.empty()) {
    text += fmt::format("\nlast lines of {}:\n", !verdict.first ? "stderr"
                                                 : is_sweep     ? describe(*verdict.first)
                                                                : rank_text(*verdict.first));
    for (const std::string& line : record.last_lines) {
      text += "  " + visible_line(line) + "\n";
    }
  }
  return text;
}

struct ShowArguments {
  std::string launch = "last";
};

int run_show(Context& context, const ShowArguments& arguments) {
  PastLaunch record = History(context.project().folder()).launch(arguments.launch);
  if (record.news == "pending" || !record.ended_at) {
    record = asked_history(context).launch(record.id.text());
  }
  if (context.options.json) {
    context.print(jobs::to_json(record));
  } else {
    context.terminal.out(record_text(context, record));
  }
  return 0;
}

struct NoteArguments {
  std::string launch;
  std::vector<std::string> words;
};

int run_note(Context& context, const NoteArguments& arguments) {
  const std::string note = join(arguments.words, " ");
  History(context.project().folder()).set_note(arguments.launch, note);
  if (context.options.json) {
    context.print({{"launch", arguments.launch}, {"note", note}});
  }
  return 0;
}

}  // namespace

void add_history(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_history);
  command.add_option("--tag", arguments.tags, "Launches with this tag; repeated, with all of them")
      ->type_name("T")
      ->allow_extra_args(false);
  command.add_flag("--failed", arguments.failed, "Only launches that failed");
  command
      .add_option("--since", arguments.since,
                  "Launches that began within this time or since this day: 12h, 7d, 2026-11-21")
      ->type_name("AGE");
  command.add_option("--sort", arguments.sort, "Sort by this number, the lowest first")->type_name("NAME");
  command
      .add_option("--columns", arguments.columns,
                  "Numbers to show, and commit, servers, ranks, tags, note (default: history.columns)")
      ->type_name("NAME,…")
      ->allow_extra_args(false);
  command.add_flag("--offline", arguments.offline, "Do not ask the servers");
}

void add_show(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_show);
  add_launch_word(command, context, arguments.launch, "Key of any of its jobs, its name, or last (default)");
}

void add_note(CLI::App& command, Context& context) {
  auto& arguments = arguments_of(command, context, run_note);
  add_launch_word(command, context, arguments.launch, "Key of any of its jobs, its name, or last")
      ->required();
  command.add_option("text", arguments.words, "The note, which replaces the one before")
      ->type_name("TEXT")
      ->required();
}

}  // namespace remote::cli
