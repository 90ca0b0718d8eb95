#include "cli/show/job_table.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <remote/sweep.hpp>
#include <remote/verdict.hpp>

#include "base/clock.hpp"
#include "base/ranges.hpp"
#include "base/strings.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/sweeps.hpp"
#include "ui/table.hpp"

namespace remote::cli {

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
      return ui::Style::yellow;  // the outcome is not known yet
  }
}

namespace {

// The style of the most important job: a failed one, or else an unfinished one.
ui::Style style_of_row(const TableRow& row) {
  using enum JobState;
  if (!verdict_of(row.batch).left.empty()) {
    return style_of(succeeded);
  }
  for (const JobState state : {failed, lost, unknown, running, starting, queued, killed, succeeded}) {
    const auto counts = [&](const Job& job) { return job.state == state && !is_idle(job); };
    if (std::ranges::any_of(row.batch, counts)) {
      return row.dim && state == succeeded ? ui::Style::dim : style_of(state);
    }
  }
  return ui::Style::plain;
}

constexpr std::size_t longest_reason = 32;
constexpr std::size_t brief_reason = 14;
constexpr std::size_t longest_point = 60;
constexpr std::size_t most_used_told = 10;  // an array may have a thousand jobs

Instant begin_of(const Job& job) {
  return job.started_at.value_or(job.created_at);
}

// How long it ran, or has been running.
std::string duration(const Batch& batch, Instant now) {
  std::optional<Instant> begin;
  std::optional<Instant> end;
  bool known = true;
  for (const Job& job : batch) {
    if (job.started_at) {
      begin = std::min(begin.value_or(*job.started_at), *job.started_at);
    }
    const bool goes_on = job.state == JobState::running || job.state == JobState::starting;
    if (job.ended_at) {
      end = std::max(end.value_or(*job.ended_at), *job.ended_at);
    } else if (goes_on) {
      end = now;
    } else if (!job.point || !job.point->waiting) {
      known = false;  // unknown for a job that does not answer
    }
  }
  return begin && end && known ? format_duration(*end - *begin) : "-";
}

// Shortens the reason, because a long one would push the other columns off the screen; `job-list --json` has
// the full text. A missing lifeline is reported as a separate warning.
Job brief(Job job, std::size_t longest) {
  if (job.reason.kind == JobReason::Kind::no_lifeline || job.reason.kind == JobReason::Kind::lifeline_dead) {
    job.reason = {.kind = JobReason::Kind::other, .text = "no lifeline"};
  } else if (job.reason.kind == JobReason::Kind::lifeline_restarted) {
    job.reason = {.kind = JobReason::Kind::other, .text = "lifeline restarted"};
  }
  job.reason.text = ui::shorten(visible_line(job.reason.text), longest);
  return job;
}

std::string ranks_text(const Batch& batch, const TableOptions& options) {
  if (options.ranks) {
    if (batch.front().point) {
      return visible_line(sweep_point_text(batch.front().point->values), longest_point);
    }
    return batch.front().rank ? rank_numbers(batch.front()) : "";
  }
  return batch.front().launch ? count_text(batch) : "";
}

std::string id_text(const Batch& batch, const TableOptions& options) {
  const Job& first = batch.front();
  constexpr std::size_t shown_digits = 8;
  return (first.launch && !options.ranks ? *first.launch : first.id).text().substr(0, shown_digits);
}

// Whether a command contains this word, alone or at the end of a path.
bool has_word(const std::string& command, const std::string& tag) {
  if (tag.find(' ') != std::string::npos) {
    return command.find(tag) != std::string::npos;
  }
  constexpr std::string_view around = "'\"();&|";
  return std::ranges::any_of(split_words(command), [&](const std::string& text) {
    std::string_view word = text;
    word.remove_prefix(std::min(word.find_first_not_of(around), word.size()));
    word = word.substr(0, word.find_last_not_of(around) + 1);
    return word == tag || word.ends_with("/" + tag);
  });
}

// The tags set by the user that all of them have.
std::string tags_text(const Batch& batch) {
  std::vector<std::string> tags = given_tags(batch.front().tags, batch.front().command);
  std::erase_if(tags, [&](const std::string& tag) {
    return std::ranges::any_of(batch, [&](const Job& job) { return !job.has_tag(tag); });
  });
  return join(tags, ",");
}

std::vector<ui::Cell> row_cells(const TableRow& row, const TableOptions& options, Instant now) {
  Batch batch;
  Batch brief_batch;
  std::vector<int> keys;
  Instant begin = begin_of(row.batch.front());
  for (const Job& job : row.batch) {
    batch.push_back(brief(job, longest_reason));
    brief_batch.push_back(brief(job, brief_reason));
    keys.push_back(job.key);
    begin = std::min(begin, begin_of(job));
  }
  ui::Cell key = ranges(keys);
  if (key.text.find(',') != std::string::npos) {
    key.brief = fmt::format("{}…", *std::ranges::min_element(keys));
  }
  std::vector<ui::Cell> cells{std::move(key)};
  if (options.ids) {
    cells.emplace_back(id_text(batch, options));
  }
  ui::Cell state(state_text(batch), style_of_row(row));
  state.brief = state_text(brief_batch);
  if (batch.front().point && batch.size() > 1) {
    SweepResults results = sweep_results(batch);
    results.best.reset();
    state.brief = sweep_text(results) + (has_ended(batch) ? left_text(batch) : "");
  }
  ui::Cell servers = server_names(batch);
  if (const std::size_t count = servers_of(batch).size(); count > 1) {
    servers.brief = counted(count, "server");
  }
  ui::Cell ranks = ranks_text(batch, options);
  if (!options.ranks && batch.front().launch) {
    int count = 0;
    for (const Job& job : batch) {
      count += ranks_of(job);
    }
    ranks.brief = std::to_string(count);
  }
  ui::Cell time = duration(batch, now);
  time.brief = time.text.substr(0, time.text.find(' '));
  cells.insert(cells.end(), {std::move(state), std::move(servers), std::move(ranks),
                             rough_duration(now - begin) + " ago", std::move(time)});
  if (options.ranks && !options.past) {
    cells.emplace_back(age_of_output(batch.front()));
  }
  if (!options.past) {
    cells.insert(cells.end(),
                 {ui::Cell(tags_text(batch)),
                  ui::Cell(batch.size() == 1 ? filled_command(batch.front()) : batch.front().command)});
  }
  for (ui::Cell& cell : cells) {
    cell.style = row.dim && cell.style == ui::Style::plain ? ui::Style::dim : cell.style;
  }
  return cells;
}

}  // namespace

std::vector<std::string> given_tags(std::vector<std::string> tags, const std::string& command) {
  std::erase_if(tags, [&](const std::string& tag) {
    return tag == "distributed" || tag == "torch" || tag == "master" || has_word(command, tag);
  });
  return tags;
}

std::vector<std::string> row_notices(const std::vector<TableRow>& rows) {
  std::vector<std::string> notices;
  std::set<int> told;
  std::set<std::string> told_waits;
  for (const TableRow& row : rows) {
    const Job& job = first_rank(row.batch);
    const char* what = job.launch ? "launch" : "job";
    const auto newer = static_cast<std::size_t>(&rows.back() - &row);
    if (const std::string used = usage_text(row.batch); !used.empty() && newer < most_used_told) {
      notices.push_back(fmt::format("{} {} {}", what, job.key, used));
    }
    if (job.state == JobState::queued && ui::display_width(job.reason.text) > longest_reason) {
      notices.push_back(fmt::format("{} {} waits: {}", what, job.key, visible_line(job.reason.text)));
    }
    for (const Job& one : row.batch) {
      for (const DebuggerWait& wait : one.waits) {
        if (told_waits.insert(wait.id + one.id.text()).second) {
          notices.push_back(fmt::format("{}: waiting in {}: {}", describe(one), wait_text(wait),
                                        attach_command(one, wait)));
        }
      }
    }
    if (const std::string notice = silence_notice(row.batch);
        !notice.empty() && told.insert(job.key).second) {
      notices.push_back(notice);
    }
  }
  return notices;
}

std::string job_table(const Context& context, const std::vector<TableRow>& rows,
                      const TableOptions& options) {
  const bool points =
      std::ranges::all_of(rows, [](const TableRow& row) { return row.batch.front().point.has_value(); });
  std::vector<ui::Column> columns{ui::Column("KEY", true).uncut()};
  if (options.ids) {
    columns.emplace_back("ID");
  }
  columns.insert(columns.end(), {ui::Column("STATE").whole(),
                                 "SERVER",
                                 !options.ranks ? ui::Column("RANKS").dispensable()
                                 : points       ? ui::Column("POINT")
                                                : ui::Column("RANK", true),
                                 {"STARTED", true},
                                 {"TIME", true}});
  if (options.ranks && !options.past) {
    columns.emplace_back("LAST LINE", true);
  }
  if (!options.past) {
    columns.insert(columns.end(), {ui::Column("TAGS").yielding(), ui::Column("COMMAND").yielding().elided()});
  }
  ui::Table table(columns);
  const Instant now = now_seconds();
  for (const TableRow& row : rows) {
    table.add(row_cells(row, options, now));
  }
  return table.text(context.terminal);
}

}  // namespace remote::cli
