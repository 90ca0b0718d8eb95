#include "cli/show/output.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/waiting.hpp"
#include "project/rank_lines.hpp"

namespace remote::cli {
namespace {

constexpr ui::Style styles[] = {ui::Style::cyan,    ui::Style::green, ui::Style::yellow,
                                ui::Style::magenta, ui::Style::blue,  ui::Style::red};

// What stands before the lines of a rank or job: "[ 2] ", in a colour of its own.
std::string prefix(Context& context, const std::string& text, std::size_t width, int number) {
  const ui::Style style = styles[static_cast<std::size_t>(number) % std::size(styles)];
  return context.terminal.paint_out(style, fmt::format("[{:>{}}]", text, width)) + " ";
}

// A screen for each job: behind "[2] " for ranks of one launch, "[3] " for jobs by their keys.
std::vector<OutputScreen> screens_for(Context& context, const std::vector<Job>& jobs) {
  const bool ranks = std::ranges::all_of(
      jobs, [&](const Job& job) { return job.rank && job.launch == jobs.front().launch; });
  std::vector<std::string> numbers;
  std::size_t width = 0;
  for (const Job& job : jobs) {
    numbers.push_back(ranks ? rank_numbers(job) : std::to_string(job.key));
    width = std::max(width, numbers.back().size());
  }
  std::vector<OutputScreen> screens;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const int number = ranks ? *jobs[i].rank : jobs[i].key;
    screens.emplace_back(context.terminal, prefix(context, numbers[i], width, number));
    if (ranks && jobs[i].labelled) {
      screens.back().keep_labels();
    }
  }
  return screens;
}

// The screens of ranks that have an output of their own, made when they first say something.
class RankScreens {
 public:
  RankScreens(Context& context, const std::vector<Job>& jobs, bool raw)
      : context_(context), jobs_(jobs), raw_(raw) {}

  OutputScreen& of(std::size_t index, int rank) {
    const Job& job = jobs_[index];
    const auto found = screens_.find({index, rank});
    if (found != screens_.end()) {
      return found->second;
    }
    if (context_.stream) {
      OutputScreen screen(context_.terminal, *context_.stream, {job.server, job.key, rank, false});
      return screens_.emplace(std::pair(index, rank), std::move(screen)).first->second;
    }
    const std::size_t width = std::to_string(job.rank.value_or(0) + ranks_of(job) - 1).size();
    OutputScreen screen(context_.terminal, prefix(context_, std::to_string(rank), width, rank));
    if (!raw_) {
      screen.filter_escapes();
    }
    return screens_.emplace(std::pair(index, rank), std::move(screen)).first->second;
  }
  void finish(std::size_t index) {
    for (auto& [place, screen] : screens_) {
      if (place.first == index) {
        screen.finish();
      }
    }
  }

 private:
  Context& context_;
  const std::vector<Job>& jobs_;
  const bool raw_;
  std::map<std::pair<std::size_t, int>, OutputScreen> screens_;  // by job and rank
};

std::vector<OutputScreen> event_screens(Context& context, const std::vector<Job>& jobs) {
  std::vector<OutputScreen> screens;
  for (const Job& job : jobs) {
    screens.emplace_back(context.terminal, *context.stream,
                         OutputSource{job.server, job.key, job.rank, job.labelled});
  }
  return screens;
}

std::vector<OutputScreen> screens_of(Context& context, const std::vector<Job>& jobs, bool whole) {
  if (context.stream) {
    return event_screens(context, jobs);
  }
  return whole ? std::vector<OutputScreen>(jobs.size(), OutputScreen(context.terminal, ""))
               : screens_for(context, jobs);
}

}  // namespace

void LineAssembler::emit(std::string& out) {
  if (!bar_ || line_ != shown_state_) {
    if (!keeps_labels_ || project::label_length(line_) == 0) {
      out += prefix_;
    }
    out += line_;
    out += '\n';
  }
  line_.clear();
  shown_state_.clear();
  bar_ = return_pending_ = false;
  shown_ = std::chrono::steady_clock::now();
}

std::string LineAssembler::take(std::string_view piece) {
  std::string out;
  while (!piece.empty()) {
    if (return_pending_ && piece.front() != '\n' && piece.front() != '\r') {
      line_.clear();
      bar_ = true;
      return_pending_ = false;
    }
    const std::size_t end = std::min(piece.find_first_of("\r\n"), piece.size());
    const std::size_t count = std::min(end, max_line_ - std::min(max_line_, line_.size()));
    line_.append(piece.substr(0, count));
    piece.remove_prefix(count);
    if (count < end) {  // the line is as long as one may get
      emit(out);
      continue;
    }
    if (piece.empty()) {
      break;
    }
    if (piece.front() == '\n') {
      emit(out);
    } else {
      return_pending_ = true;
    }
    piece.remove_prefix(1);
  }
  if (bar_ && !line_.empty() && std::chrono::steady_clock::now() - shown_ >= bar_every_) {
    out += prefix_ + line_ + '\n';  // the line itself goes on
    shown_state_ = line_;
    shown_ = std::chrono::steady_clock::now();
  }
  return out;
}

std::string LineAssembler::finish() {
  std::string out;
  if (!line_.empty()) {
    emit(out);
  }
  return out;
}

std::string EscapeFilter::take(std::string_view piece) {
  constexpr std::size_t longest = 64;  // color sequences are shorter
  std::string text = std::move(waiting_);
  waiting_.clear();
  text += piece;
  std::string shown;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c == '\x1b') {
      // ESC [ numbers, and a letter that says what they do.
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
    // U+0080 to U+009F do in one character what ESC does with the next one.
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
    terminal_.out(text);
  } else {
    terminal_.err(text);
  }
  last_ = text.empty() ? last_ : text.back();
}

void refuse_output_as_json(const Context& context, const std::string& what) {
  if (context.options.json && !context.stream) {
    throw Error::usage(what, "output as it comes is no JSON value",
                       "--jsonl prints each line of it as a JSON event");
  }
}

int follow_on_screen(Context& context, const std::vector<Job>& jobs, FollowRequest request, bool raw) {
  const bool launch = request.first_rank_only;
  const bool single = jobs.size() == 1 && !launch;
  ui::Terminal& terminal = context.terminal;
  terminal.set_cancel(context.cancel);  // a screen that stands still must not hold back Ctrl-C
  std::vector<OutputScreen> screens = screens_of(context, jobs, single || launch);
  for (OutputScreen& screen : screens) {
    if (!raw && !context.stream) {
      screen.filter_escapes();
    }
  }
  RankScreens of_ranks(context, jobs, raw);
  EndTeller ends(terminal, jobs);
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
  request.on_rank_output = [&](std::size_t index, int rank, OutputStream stream, std::string_view data) {
    waiting.reset();
    of_ranks.of(index, rank).take(stream, data);
  };
  request.on_output = [&](std::size_t index, OutputStream stream, std::string_view data) {
    waiting.reset();  // what is printed would go into its row
    screens[index].take(stream, data);
  };
  request.on_ended = [&, follow = request.follow](std::size_t index, const Job& job) {
    screens[index].finish();
    of_ranks.finish(index);
    if (terminal.stdout_is_terminal() && terminal.stderr_is_terminal() && screens[index].within_line()) {
      terminal.err("\n");  // what comes now is not the job's
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
    std::vector<Job> rest = context.project().with_launch(jobs);
    std::erase_if(rest, [](const Job& job) { return is_final(job.state); });
    const char* what =
        std::ranges::any_of(rest, [](const Job& job) { return job.launch.has_value(); }) ? "ranks" : "jobs";
    terminal.notice(
        rest.empty() ? "\nstopped following"
        : rest.size() == 1
            ? "\nstopped following; the job goes on. To end it: " + kill_command(rest)
            : fmt::format("\nstopped following; the {} go on. To end them: {}", what, kill_command(rest)));
    throw;
  }
  waiting.reset();
  for (std::size_t i = 0; i < screens.size(); ++i) {
    screens[i].finish();
    of_ranks.finish(i);
  }
  ends.finish(result.verdict.has_value());
  show_end(context, result);
  if (single && result.errors.empty()) {
    return is_final(result.jobs.front().state) ? exit_code_of(result.jobs.front()) : 0;
  }
  if (result.verdict && !result.verdict->left.empty()) {
    return 0;
  }
  const bool all_well = std::ranges::none_of(
      result.jobs, [](const Job& job) { return is_final(job.state) && exit_code_of(job) != 0; });
  return all_well && result.errors.empty() ? 0 : 1;
}

}  // namespace remote::cli
