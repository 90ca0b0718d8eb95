#include "cli/show/output.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/ranges.hpp"
#include "base/strings.hpp"
#include "cli/failure_hints.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/verdict.hpp"
#include "cli/show/waiting.hpp"

namespace remote::cli {
namespace {

constexpr ui::Style styles[] = {ui::Style::cyan,    ui::Style::green, ui::Style::yellow,
                                ui::Style::magenta, ui::Style::blue,  ui::Style::red};

// The prefix of a rank's or job's lines, "[ 2] ", in its own color.
std::string prefix(Context& context, const std::string& text, std::size_t width, int number) {
  const ui::Style style = styles[static_cast<std::size_t>(number) % std::size(styles)];
  return context.terminal.paint_out(style, fmt::format("[{:>{}}]", text, width)) + " ";
}

// The screens for jobs and their ranks, created on their first output. A single job or rank has no prefix;
// otherwise the prefix is "[2] " for a rank, "[0-3] " for the process that runs ranks, and "[7] ", the key,
// for jobs of several launches.
class Screens {
 public:
  Screens(Context& context, const std::vector<Job>& jobs, const FollowRequest& request, bool raw)
      : context_(context),
        jobs_(jobs),
        raw_(raw),
        one_rank_(request.ranks.size() == 1 || request.first_rank_only),
        whole_(jobs.size() == 1 || request.first_rank_only),
        launch_(std::ranges::all_of(
            jobs, [&](const Job& job) { return job.rank && job.launch == jobs.front().launch; })),
        all_(request.ranks),
        whole_output_(request.grep.empty()) {
    for (const Job& job : jobs) {
      width_ = std::max(width_, name(job).size());
      rank_width_ = std::max(rank_width_, std::to_string(job.rank.value_or(0) + ranks_of(job) - 1).size());
      for (int i = 0; request.fold && request.ranks.empty() && i < ranks_of(job); ++i) {
        all_.push_back(job.rank.value_or(0) + i);
      }
    }
    std::ranges::sort(all_);
  }

  void take(const JobOutput& output) {
    if (output.stream == OutputStream::err && whole_output_) {
      append_end(errors_[output.job], output.text);
    }
    if (!output.ranks.empty()) {
      take_folded(output);
      return;
    }
    auto found = screens_.find({output.job, output.rank});
    if (found == screens_.end()) {
      found =
          screens_.emplace(std::pair(output.job, output.rank), make(jobs_[output.job], output.rank)).first;
    }
    found->second.take(output.stream, output.text);
  }
  // Whether the last of these lines, which are from the rank's stderr, was shown.
  bool has_shown(const Job& rank, const std::vector<std::string>& lines) const {
    const auto last = std::ranges::find_if(lines.rbegin(), lines.rend(),
                                           [](const std::string& line) { return !trim(line).empty(); });
    return last != lines.rend() && std::ranges::any_of(errors_, [&](const auto& one) {
             return jobs_[one.first].id == rank.id && one.second.find(*last) != std::string::npos;
           });
  }
  void finish(std::size_t index) {
    for (auto& [place, screen] : screens_) {
      if (place.first == index) {
        screen.finish();
      }
    }
  }

 private:
  std::string name(const Job& job) const { return launch_ ? rank_numbers(job) : std::to_string(job.key); }

  // Shows a whole line that these ranks wrote. The fewer ranks, the more it is highlighted.
  void take_folded(const JobOutput& output) {
    const Job& job = jobs_[output.job];
    if (context_.stream) {
      OutputSource source{job.server, job.key, output.rank, {output.ranks.begin(), output.ranks.end()}};
      OutputScreen(context_.terminal, *context_.stream, std::move(source)).take(output.stream, output.text);
      return;
    }
    const std::vector<int> ranks(output.ranks.begin(), output.ranks.end());
    std::vector<int> others;
    std::ranges::set_difference(all_, ranks, std::back_inserter(others));
    std::string who = ranges(ranks);
    if (who.find(',') != std::string::npos && !others.empty() && others.size() < ranks.size()) {
      who = ranges(all_) + " but " + ranges(others);
    }
    const ui::Style style = others.empty()
                                ? ui::Style::plain
                                : styles[static_cast<std::size_t>(ranks.front()) % std::size(styles)];
    OutputScreen screen = behind(context_.terminal.paint_out(style, "[" + who + "]") + " ");
    screen.take(output.stream, output.text);
    screen.finish();
  }

  OutputScreen make(const Job& job, std::optional<int> rank) {
    if (context_.stream) {
      return {context_.terminal, *context_.stream, {job.server, job.key, rank ? rank : job.rank, {}}};
    }
    std::string before;
    const bool divided = rank && ranks_of(job) > 1 && !one_rank_;
    if (!whole_ && !(divided && launch_)) {
      before = prefix(context_, name(job), width_, launch_ ? *job.rank : job.key);
    }
    if (divided) {
      before += prefix(context_, std::to_string(*rank), rank_width_, *rank);
    }
    return behind(before);
  }

  OutputScreen behind(const std::string& before) const {
    OutputScreen screen(context_.terminal, before);
    if (!raw_) {
      screen.filter_escapes();
    }
    return screen;
  }

  Context& context_;
  const std::vector<Job>& jobs_;
  const bool raw_;
  const bool one_rank_;
  const bool whole_;
  const bool launch_;
  std::vector<int> all_;                       // the ranks whose lines are folded
  const bool whole_output_;                    // all lines are shown
  std::map<std::size_t, std::string> errors_;  // by job: the last part of its stderr that was shown
  std::size_t width_ = 0;
  std::size_t rank_width_ = 0;
  std::map<std::pair<std::size_t, std::optional<int>>, OutputScreen> screens_;
};

}  // namespace

std::string EscapeFilter::take(std::string_view piece) {
  constexpr std::size_t longest = 64;  // color sequences are shorter
  std::string text = std::move(waiting_);
  waiting_.clear();
  text += piece;
  std::string shown;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c == '\x1b') {
      // ESC [ numbers, and a final letter for the function.
      const bool opens = at + 1 < text.size() && text[at + 1] == '[';
      const std::size_t end = opens ? text.find_first_not_of("0123456789;:", at + 2) : std::string::npos;
      if (end != std::string::npos && std::string_view("mKGCDX").find(text[end]) != std::string_view::npos) {
        shown += text.substr(at, end + 1 - at);
        at = end;
        continue;
      }
      if (end == std::string::npos && (opens || at + 1 == text.size()) && text.size() - at < longest) {
        waiting_ = text.substr(at);
        break;
      }
    }
    // U+0080 to U+009F are single characters equivalent to ESC and the next character.
    const bool c1 =
        c == 0xc2 && at + 1 < text.size() && (static_cast<unsigned char>(text[at + 1]) & 0xe0U) == 0x80;
    if (c == 0xc2 && at + 1 == text.size()) {
      waiting_ = text.substr(at);
    } else if (c1) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++at]));
    } else if ((c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\b') || c == 0x7f) {
      shown += {'^', static_cast<char>(c ^ 0x40U)};
    } else {
      shown += text[at];
    }
  }
  return shown;
}

std::string EscapeFilter::finish() {
  std::string rest = std::move(waiting_);
  waiting_.clear();
  return rest.starts_with('\x1b') ? "^[" + rest.substr(1) : rest;
}

void OutputScreen::filter_escapes() {
  if (terminal_.stdout_is_terminal()) {
    out_filter_.emplace();
  }
  if (terminal_.stderr_is_terminal()) {
    err_filter_.emplace();
  }
}

void OutputScreen::take(OutputStream stream, std::string_view data) {
  std::string filtered;
  if (std::optional<EscapeFilter>& filter = stream == OutputStream::out ? out_filter_ : err_filter_) {
    filtered = filter->take(data);
    data = filtered;
  }
  if (raw_) {
    print(stream, data);
  } else {
    print(stream, (stream == OutputStream::out ? out_ : err_).take(data));
  }
}

void OutputScreen::finish() {
  for (const OutputStream stream : {OutputStream::out, OutputStream::err}) {
    LineAssembler& lines = stream == OutputStream::out ? out_ : err_;
    std::optional<EscapeFilter>& filter = stream == OutputStream::out ? out_filter_ : err_filter_;
    const std::string rest = filter ? filter->finish() : std::string();
    print(stream, (raw_ ? rest : lines.take(rest)) + lines.finish());
  }
}

void OutputScreen::print(OutputStream stream, std::string_view text) {
  if (events_ != nullptr) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size() - 1);
      events_->output(source_, stream, text.substr(0, text[end] == '\n' ? end : end + 1));
      text.remove_prefix(end + 1);
    }
    return;
  }
  if (stream == OutputStream::out) {
    terminal_.pass_out(text);
  } else {
    terminal_.pass_err(text);
  }
}

void refuse_output_as_json(const Context& context, const std::string& what) {
  if (context.options.json && !context.stream) {
    throw Error::usage(what, "live output is not a JSON value",
                       "--jsonl prints each line of it as a JSON event");
  }
}

namespace {

// The message for a user who has stopped following these jobs.
std::string stopped_following(std::vector<Job> jobs) {
  std::erase_if(jobs, [](const Job& job) { return is_final(job.state); });
  if (jobs.empty()) {
    return "stopped following";
  }
  if (jobs.size() == 1) {
    return "stopped following; the job keeps running. To end it: " + kill_command(jobs);
  }
  const auto some = [&](const auto& member) {
    return std::ranges::any_of(jobs, [&](const Job& job) { return (job.*member).has_value(); });
  };
  return fmt::format("stopped following; the {} keep running. To end them: {}",
                     some(&Job::point)    ? "points"
                     : some(&Job::launch) ? "ranks"
                                          : "jobs",
                     kill_command(jobs));
}

// `single`: for a single job without a launch.
int code_of(const FollowResult& result, bool single) {
  if (single && result.errors.empty()) {
    return is_final(result.jobs.front().state) ? exit_code_of(result.jobs.front()) : 0;
  }
  if (result.verdict && result.errors.size() == result.gone.size()) {
    return result.verdict->succeeded == result.verdict->total || !result.verdict->left.empty() ? 0 : 1;
  }
  const bool all_well = std::ranges::none_of(
      result.jobs, [](const Job& job) { return is_final(job.state) && exit_code_of(job) != 0; });
  return all_well && result.errors.empty() ? 0 : 1;
}

}  // namespace

int follow_on_screen(Context& context, const std::vector<Job>& jobs, FollowRequest request, bool raw) {
  const bool launch = request.first_rank_only;
  const bool single = jobs.size() == 1 && !launch;
  ui::Terminal& terminal = context.terminal;
  terminal.set_cancel(context.cancel);  // a terminal that blocks must not delay Ctrl-C
  Screens screens(context, jobs, request, raw);
  EndTeller ends(terminal, jobs);
  std::string output_end;
  std::vector<std::string> unheard = servers_of(jobs);
  std::optional<Waiting> waiting(std::in_place, terminal, "for " + server_names(unheard));
  request.on_settled = [&](const std::string& server) {
    std::erase(unheard, server);
    if (unheard.empty()) {
      waiting.reset();
    } else if (waiting) {
      waiting->set("for " + server_names(unheard));
    }
  };
  request.on_output = [&](const JobOutput& output) {
    waiting.reset();  // otherwise the output would be printed into its row
    screens.take(output);
    append_end(output_end, output.text);
  };
  request.on_ended = [&, follow = request.follow](std::size_t index, const Job& job) {
    screens.finish(index);
    if (terminal.stdout_is_terminal() && terminal.stderr_is_terminal()) {
      terminal.end_open_line();  // further output is not from the job
    }
    if (context.stream && is_final(job.state)) {
      context.stream->ended(job);
    }
    if (!launch && (is_final(job.state) || (follow && job.state == JobState::unknown))) {
      ends.take(job);
    }
  };
  FollowResult result;
  try {
    result = context.project().follow(jobs, request);
  } catch (const Interrupted&) {
    waiting.reset();
    context.when_interrupted = stopped_following(context.project().with_launch(jobs));
    throw;
  }
  waiting.reset();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    screens.finish(i);
  }
  ends.finish(result.verdict.has_value(), result.jobs);
  if (single && !result.verdict && result.jobs.front().state == JobState::failed) {
    if (const std::string hint = hint_for_output(output_end); !hint.empty()) {
      terminal.notice(fmt::format(" hint: {}", hint));
    }
  }
  show_end(context, result,
           result.verdict && result.verdict->first &&
               screens.has_shown(*result.verdict->first, result.verdict->last_lines));
  return code_of(result, single);
}

}  // namespace remote::cli
