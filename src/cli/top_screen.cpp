#include "cli/top_screen.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "cli/keyboard.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/top.hpp"
#include "ui/full_screen.hpp"

namespace remote::cli {
namespace {

enum class Key { up, down, page_up, page_down, follow, stacks, kill, yes, no, help, leave, suspend, other };

// Takes the first key from what was typed. A terminal sends the arrows as "\033[A" or "\033OA".
Key take_key(std::string& typed) {
  constexpr std::array<std::pair<std::string_view, Key>, 8> sequences{{{"\033[A", Key::up},
                                                                       {"\033OA", Key::up},
                                                                       {"\033[B", Key::down},
                                                                       {"\033OB", Key::down},
                                                                       {"\033[5~", Key::page_up},
                                                                       {"\033[6~", Key::page_down},
                                                                       {"\033[", Key::other},
                                                                       {"\033O", Key::other}}};
  for (const auto& [sequence, key] : sequences) {
    if (typed.starts_with(sequence)) {
      typed.erase(0, sequence.size());
      if (key == Key::other) {  // of a key that has no meaning here
        typed.erase(0, typed.find_first_not_of("0123456789;") + 1);
      }
      return key;
    }
  }
  const char first = typed.front();
  typed.erase(0, 1);
  switch (first) {
    case 'k':
      return Key::up;
    case 'j':
      return Key::down;
    case 'f':
    case '\r':
    case '\n':
      return Key::follow;
    case 's':
      return Key::stacks;
    case 'x':
    case 'K':
      return Key::kill;
    case 'y':
    case 'Y':
      return Key::yes;
    case 'n':
    case 'N':
      return Key::no;
    case '?':
    case 'h':
      return Key::help;
    case 'q':
    case '\003':
    case '\033':
      return Key::leave;
    case '\032':
      return Key::suspend;
    default:
      return Key::other;
  }
}

const std::vector<std::string> help_text{
    "up, down (or k, j)   choose a job",
    "page up, page down   see what does not fit",
    "f or Enter           follow the job's output",
    "s                    Python stacks of its ranks",
    "x                    end the job; it asks first",
    "q, Esc or Ctrl-C     back, and out",
    "Ctrl-Z               stop remote for a while",
    "",
    "A GPU's last column says who has memory of it: a job of this project by",
    "its key, another process with its owner, its name and its number."};

// A message as one line without colours.
std::string plain(std::string_view message) {
  std::string text;
  for (std::size_t i = 0; i < message.size(); ++i) {
    if (message.substr(i).starts_with("\033[")) {
      i = std::min(message.find('m', i), message.size() - 1);
    } else {
      text += message[i] == '\n' ? ' ' : message[i];
    }
  }
  return std::string(trim(text));
}

class TopScreen {
 public:
  TopScreen(Context& context, const TopScreenRequest& request)
      : context_(context), request_(request), names_(context.project().server_names(request.servers)) {
    for (const std::string& name : names_) {
      samples_.emplace_back().server = name;
    }
  }

  void run() {
    begin();
    Keyboard keyboard(context_);
    const TerminalSide side = keyboard.side();
    keyboard_ = &keyboard;
    if (context_.terminal.stdin_is_terminal()) {
      side.begin();
      inputs_.push_back(side.input);
    }
    inputs_.push_back(side.resized);
    resized_ = side.resized;
    context_.on_event = [this](const Event& event) {
      note_ = plain(context_.terminal.captured([&] { context_.show(event); }));
    };
    context_.terminal.set_cancel(context_.cancel);  // a screen that stands still must not hold back a signal
    ui::FullScreen screen(context_.terminal.out_descriptor());
    screen_ = &screen;
    draw();
    watch();
    keyboard.finish();
  }

 private:
  enum class Mode { servers, text, follow, confirm };

  // Whoever is asked for a password is asked before the screen is there. It comes as soon as all servers have
  // answered; one that takes longer than two seconds, and asks for nothing, does not keep it back.
  void begin() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    std::vector<bool> heard(samples_.size(), false);
    WatchRequest request;
    request.servers = request_.servers;
    request.interval = std::chrono::milliseconds(500);
    request.once = true;
    request.on_sample = [&](std::size_t index, const ServerSample& sample) {
      samples_[index] = sample;
      heard[index] = true;
    };
    request.on_wake = [&] {
      const bool all = std::ranges::find(heard, false) == heard.end();
      return !all && (context_.questions > 0 || std::chrono::steady_clock::now() < until);
    };
    context_.project().watch(request);
    context_.may_ask = false;
  }

  void watch() {
    WatchRequest request;
    request.servers = request_.servers;
    request.interval = request_.interval;
    request.inputs = inputs_;
    request.on_sample = [this](std::size_t index, const ServerSample& sample) {
      samples_[index] = sample;
      changed();
    };
    request.on_wake = [this] { return on_wake(); };
    context_.project().watch(request);
  }

  // Of many servers that answer at the same time, not each draws the screen.
  void changed() {
    const auto now = std::chrono::steady_clock::now();
    if (now - drawn_ < std::chrono::milliseconds(200) && ++skipped_ < samples_.size()) {
      return;
    }
    if (mode_ == Mode::follow) {
      read_output();
    }
    draw();
  }

  std::vector<Job> all_jobs() const {
    std::vector<Job> jobs;
    for (const ServerSample& sample : samples_) {
      for (const JobSample& one : sample.jobs) {
        jobs.push_back(one.job);
      }
    }
    return jobs;
  }
  std::optional<Job> chosen() const {
    const std::vector<Job> jobs = all_jobs();
    const auto found = std::ranges::find_if(jobs, [&](const Job& job) { return job.id == selected_; });
    return found == jobs.end() ? std::nullopt : std::optional(*found);
  }

  void move(int step) {
    const std::vector<Job> jobs = all_jobs();
    if (jobs.empty()) {
      return;
    }
    const auto found = std::ranges::find_if(jobs, [&](const Job& job) { return job.id == selected_; });
    const auto last = static_cast<std::ptrdiff_t>(jobs.size()) - 1;
    const std::ptrdiff_t at = found == jobs.end() ? (step > 0 ? 0 : last) : found - jobs.begin() + step;
    selected_ = jobs[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at, 0, last))].id;
    show_selected_ = true;
  }

  bool on_wake() {
    std::array<char, 256> bytes{};
    while (::read(resized_, bytes.data(), bytes.size()) > 0) {
    }
    bool ended = false;
    if (inputs_.size() > 1 &&
        context_.terminal.stdin_input(std::chrono::seconds(0)) != ui::Terminal::Input::nothing_yet) {
      const ssize_t count = ::read(context_.terminal.input(), bytes.data(), bytes.size());
      ended = count <= 0;
      typed_.append(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    }
    while (!ended && !typed_.empty()) {
      ended = !press(take_key(typed_));
      if (!ended) {
        draw();  // also between keys that were typed at once: each may ask something
      }
    }
    if (!ended) {
      draw();
    }
    return !ended;
  }

  // False ends the command.
  bool press(Key key) {
    note_.clear();
    if (key == Key::suspend) {
      suspend();
      return true;
    }
    if (mode_ == Mode::confirm) {
      mode_ = Mode::servers;
      if (key == Key::yes) {
        kill();
      }
      return true;
    }
    if (key == Key::page_up || key == Key::page_down) {
      const std::size_t page = std::max<std::size_t>(context_.terminal.rows(), 4) - 3;
      top_ = key == Key::page_down ? top_ + page : top_ - std::min(top_, page);
      return true;
    }
    if (mode_ != Mode::servers) {
      if (key == Key::leave) {
        mode_ = Mode::servers;
        top_ = 0;
      }
      return true;
    }
    return press_in_list(key);
  }

  bool press_in_list(Key key) {
    switch (key) {
      case Key::up:
        move(-1);
        break;
      case Key::down:
        move(1);
        break;
      case Key::help:
        show_text("Keys", help_text);
        break;
      case Key::leave:
        return false;
      case Key::follow:
      case Key::stacks:
      case Key::kill:
        act(key);
        break;
      default:
        break;
    }
    return true;
  }

  void act(Key key) {
    const std::optional<Job> job = chosen();
    if (!job) {
      note_ = all_jobs().empty() ? "no job of this project runs" : "choose a job with the arrow keys first";
    } else if (key == Key::kill) {
      mode_ = Mode::confirm;
    } else if (key == Key::stacks) {
      read_stacks(*job);
    } else {
      mode_ = Mode::follow;
      title_ = describe(*job) + ": " + job->command;
      read_output();
    }
  }

  void show_text(std::string title, std::vector<std::string> lines) {
    mode_ = Mode::text;
    title_ = std::move(title);
    text_ = std::move(lines);
    top_ = 0;
  }

  // The last lines that fit on the screen.
  void read_output() {
    const std::optional<Job> job = chosen();
    if (!job) {
      note_ = "the job has ended";
      return;
    }
    FollowRequest request;
    request.lines = static_cast<int>(context_.terminal.rows());
    request.follow = false;
    std::array<std::string, 2> output;
    request.on_output = [&](std::size_t, OutputStream stream, std::string_view data) {
      append_end(output[stream == OutputStream::out ? 0 : 1], data);
    };
    const FollowResult result = context_.project().follow({*job}, request);
    text_.clear();
    for (const std::string& stream : output) {
      for (const std::string& line : split(last_lines(stream, context_.terminal.rows()), '\n')) {
        text_.push_back(line.substr(line.rfind('\r') == std::string::npos ? 0 : line.rfind('\r') + 1));
      }
    }
    for (const Error& error : result.errors) {
      note_ = error.message();
    }
  }

  void read_stacks(const Job& job) {
    note_ = "asking for stacks …";
    draw();
    note_.clear();
    const StacksResult result = context_.project().stacks({job});
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
      lines.emplace_back("nothing of it runs");
    }
    show_text("Stacks of " + describe(job), std::move(lines));
  }

  void kill() {
    const std::optional<Job> job = chosen();
    if (!job) {
      note_ = "the job has ended";
      return;
    }
    note_ = fmt::format("ending {} …", describe(*job));
    draw();
    const KillResult result = context_.project().kill({*job}, {});
    note_ = result.errors.empty() ? fmt::format("{}: {}", describe(*job), outcome_of(result))
                                  : result.errors.front().message();
  }

  static std::string outcome_of(const KillResult& result) {
    using Outcome = KillResult::Entry::Outcome;
    if (result.entries.empty()) {
      return "nothing is known of it";
    }
    switch (result.entries.front().outcome) {
      case Outcome::survivors:
        return "some of its processes live on; see: remote job-kill";
      case Outcome::refused:
        return "it was left alone; see: remote job-kill";
      default:
        return "it is ended";
    }
  }

  // As Ctrl-Z does where keys are not passed on.
  void suspend() {
    keyboard_->pause();
    ::raise(SIGTSTP);
    keyboard_->resume();
    screen_->enter();
  }

  std::string line_of(std::string_view text, ui::Style style = ui::Style::plain) const {
    return context_.terminal.paint_out(style, ui::shorten(visible_line(text), context_.terminal.columns()));
  }

  std::vector<std::string> body(std::size_t rows) {
    std::vector<TopLine> lines;
    if (mode_ == Mode::servers || mode_ == Mode::confirm) {
      const auto interval_s = std::chrono::ceil<std::chrono::seconds>(request_.interval).count();
      lines = top_lines(context_, samples_,
                        {.width = context_.terminal.columns(),
                         .selected = selected_,
                         .silent_after_s = 3 * interval_s + 3});
    } else {
      for (const std::string& line : text_) {
        lines.push_back({line_of(line)});
      }
    }
    const std::size_t most = lines.size() > rows ? lines.size() - rows : 0;
    if (mode_ == Mode::follow) {
      top_ = most;  // what comes last
    }
    if (show_selected_) {
      show_selected_ = false;
      const auto found =
          std::ranges::find_if(lines, [&](const TopLine& line) { return line.job && line.job == selected_; });
      const auto at = static_cast<std::size_t>(found - lines.begin());
      top_ = at < top_ ? at : at >= top_ + rows ? at + 1 - rows : top_;
    }
    top_ = std::min(top_, most);
    std::vector<std::string> shown;
    for (std::size_t i = top_; i < lines.size() && shown.size() < rows; ++i) {
      shown.push_back(lines[i].text);
    }
    below_ = lines.size() - top_ - shown.size();
    shown.resize(rows);
    return shown;
  }

  std::string footer() const {
    if (mode_ == Mode::confirm) {
      const std::optional<Job> job = chosen();
      return line_of(job ? fmt::format("End {}? [y/N] ", describe(*job)) : "it has ended", ui::Style::yellow);
    }
    if (!note_.empty()) {
      return line_of(trim(note_), ui::Style::yellow);
    }
    const std::string more = below_ > 0 ? counted(below_, "line") + " below   " : "";
    const bool keys = inputs_.size() > 1;
    const char* text = !keys ? "Ctrl-C ends it"
                       : mode_ == Mode::servers
                           ? "arrows choose   f follow   s stacks   x end a job   ? help   q quit"
                           : "q back";
    return line_of(more + text, ui::Style::dim);
  }

  void draw() {
    const std::size_t rows = std::max<std::size_t>(context_.terminal.rows(), 3);
    const bool list = mode_ == Mode::servers || mode_ == Mode::confirm;
    const std::string title =
        list ? fmt::format("remote top   {}   {}   every {} s", context_.project().name(),
                           format_local_time(now_seconds()),
                           std::chrono::ceil<std::chrono::seconds>(request_.interval).count())
             : title_;
    std::vector<std::string> lines{line_of(title, ui::Style::bold)};
    for (std::string& line : body(rows - 2)) {
      lines.push_back(std::move(line));
    }
    lines.push_back(footer());
    screen_->enter();
    context_.terminal.out(ui::FullScreen::frame(lines, rows));
    drawn_ = std::chrono::steady_clock::now();
    skipped_ = 0;
  }

  Context& context_;
  const TopScreenRequest& request_;
  std::vector<std::string> names_;
  std::vector<ServerSample> samples_;
  Keyboard* keyboard_ = nullptr;
  ui::FullScreen* screen_ = nullptr;
  std::vector<int> inputs_;
  int resized_ = -1;
  std::string typed_;
  std::string note_;
  Mode mode_ = Mode::servers;
  std::string title_;
  std::vector<std::string> text_;
  std::optional<JobId> selected_;
  bool show_selected_ = false;
  std::size_t top_ = 0;    // the first line that is shown
  std::size_t below_ = 0;  // how many lines there are behind the last
  std::chrono::steady_clock::time_point drawn_;
  std::size_t skipped_ = 0;
};

}  // namespace

int show_top_screen(Context& context, const TopScreenRequest& request) {
  TopScreen(context, request).run();
  return 0;
}

}  // namespace remote::cli
