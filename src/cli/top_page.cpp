#include "cli/top_page.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/top.hpp"

namespace remote::cli {
namespace {

std::string line_of(const Context& context, std::string_view text, ui::Style style = ui::Style::plain) {
  return context.terminal.paint_out(style, ui::shorten(visible_line(text), context.terminal.columns()));
}

std::chrono::seconds whole_seconds(std::chrono::milliseconds time) {
  return std::chrono::ceil<std::chrono::seconds>(time);
}

}  // namespace

std::vector<Job> TopPage::jobs() const {
  std::vector<Job> jobs;
  for (const ServerSample& sample : samples) {
    for (const JobSample& one : sample.jobs) {
      jobs.push_back(one.job);
    }
  }
  return jobs;
}

std::optional<Job> TopPage::chosen() const {
  const std::vector<Job> all = jobs();
  const auto found = std::ranges::find_if(all, [&](const Job& job) { return job.id == selected_; });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

void TopPage::move(int step) {
  const std::vector<Job> all = jobs();
  if (all.empty()) {
    return;
  }
  const auto found = std::ranges::find_if(all, [&](const Job& job) { return job.id == selected_; });
  const auto last = static_cast<std::ptrdiff_t>(all.size()) - 1;
  const std::ptrdiff_t at = found == all.end() ? (step > 0 ? 0 : last) : found - all.begin() + step;
  selected_ = all[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at, 0, last))].id;
  show_selected_ = true;
}

void TopPage::turn_page(bool down, std::size_t rows) {
  const std::size_t page = std::max<std::size_t>(rows, 4) - 3;
  top_ = down ? top_ + page : top_ - std::min(top_, page);
}

void TopPage::show_text(std::string new_title, std::vector<std::string> lines) {
  mode = Mode::text;
  title = std::move(new_title);
  text = std::move(lines);
  top_ = 0;
}

void TopPage::show_servers() {
  mode = Mode::servers;
  top_ = 0;
}

std::chrono::seconds TopPage::silent_after() const {
  return 3 * whole_seconds(interval) + std::chrono::seconds(3);
}

bool TopPage::is_silent(const std::string& server) const {
  const auto found = std::ranges::find(samples, server, &ServerSample::server);
  return found != samples.end() &&
         (found->error || (found->heard_at && now_seconds() - *found->heard_at > silent_after()));
}

std::string TopPage::others_go_on() const {
  return fmt::format("{} {} running", counted(others, "other rank"), others == 1 ? "keeps" : "keep");
}

std::vector<std::string> TopPage::body(const Context& context, std::size_t rows) {
  std::vector<TopLine> all;
  if (mode == Mode::servers || mode == Mode::confirm) {
    all = top_lines(
        context, samples,
        {.width = context.terminal.columns(), .selected = selected_, .silent_after = silent_after()});
  } else {
    for (const std::string& line : text) {
      all.push_back({line_of(context, line)});
    }
  }
  const std::size_t most = all.size() > rows ? all.size() - rows : 0;
  if (mode == Mode::follow) {
    top_ = most;  // the last lines
  }
  if (show_selected_) {
    show_selected_ = false;
    const auto found =
        std::ranges::find_if(all, [&](const TopLine& line) { return line.job && line.job == selected_; });
    const auto at = static_cast<std::size_t>(found - all.begin());
    top_ = at < top_ ? at : at >= top_ + rows ? at + 1 - rows : top_;
  }
  top_ = std::min(top_, most);
  std::vector<std::string> shown;
  for (std::size_t i = top_; i < all.size() && shown.size() < rows; ++i) {
    shown.push_back(all[i].text);
  }
  below_ = all.size() - top_ - shown.size();
  shown.resize(rows);
  return shown;
}

std::string TopPage::footer(const Context& context) const {
  if (mode == Mode::confirm) {
    // The question comes first, because a narrow screen cuts off the end.
    const std::string rest =
        others == 0 ? "? [y/N] " : fmt::format(" alone? [y/N]  {} (X: all)", others_go_on());
    return line_of(context, fmt::format("End {}{}", describe(to_end), rest), ui::Style::yellow);
  }
  if (!note.empty()) {
    return line_of(context, trim(note), ui::Style::yellow);
  }
  const std::string more = below_ > 0 ? counted(below_, "line") + " below   " : "";
  const char* keys = !has_keys ? "Ctrl-C ends it"
                     : mode == Mode::servers
                         ? "arrows choose   f follow   s stacks   x end job   X launch   ? help   q quit"
                         : "q back";
  return line_of(context, more + keys, ui::Style::dim);
}

std::vector<std::string> TopPage::lines(Context& context, std::size_t rows) {
  const bool list = mode == Mode::servers || mode == Mode::confirm;
  const std::string head =
      list ? fmt::format("remote top   {}   {}   every {} s", context.project().name(),
                         format_local_time(now_seconds()), whole_seconds(interval).count())
           : title;
  std::vector<std::string> all{line_of(context, head, ui::Style::bold)};
  for (std::string& line : body(context, rows - 2)) {
    all.push_back(std::move(line));
  }
  all.push_back(footer(context));
  return all;
}

std::vector<std::string> stack_lines(const StacksResult& result) {
  std::vector<std::string> lines;
  for (const RankStack& one : result.ranks) {
    lines.push_back(
        fmt::format("{} (pid {})", one.rank ? fmt::format("rank {}", *one.rank) : "process", one.pid));
    for (const ThreadStack& thread : one.threads) {
      lines.push_back("  " + thread.name);
      for (const std::string& frame : thread.frames) {
        lines.push_back("    " + frame);
      }
    }
    if (one.threads.empty()) {
      lines.push_back("  no Python stack: " + one.why);
    }
    lines.insert(lines.end(), one.kernel.begin(), one.kernel.end());
  }
  for (const Error& error : result.errors) {
    lines.push_back(error.message());
  }
  if (lines.empty()) {
    lines.emplace_back("none of its ranks is running");
  }
  return lines;
}

}  // namespace remote::cli
