#include "cli/top_screen.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/strings.hpp"
#include "cli/keyboard.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "cli/show/top.hpp"
#include "cli/top_keys.hpp"
#include "ui/full_screen.hpp"

namespace remote::cli {
namespace {

// A message as one line without colours.
std::string plain_message(std::string_view message) {
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

// What is asked of servers, on a thread of its own: the keys are read meanwhile, whatever a server does.
// The destructor gives it up.
class Asking {
 public:
  // Shows an answer, on the thread that draws.
  using Show = std::function<void()>;
  // `wake` is readable for the thread that draws when the answer is there.
  Asking(int wake, std::function<Show(const Cancel&)> ask)
      : thread_([this, wake, ask = std::move(ask)] {
          try {
            show_ = ask(cancel_);
          } catch (const Interrupted&) {
            show_ = [] {};
          }
          done_ = true;
          static_cast<void>(!::write(wake, "a", 1));  // where the pipe is full, it is known already
        }) {}
  ~Asking() { cancel_.cancel(); }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

  bool done() const { return done_; }
  // Waits for the answer.
  const Show& answer() {
    if (thread_.joinable()) {
      thread_.join();
    }
    return show_;
  }

 private:
  Cancel cancel_;
  Show show_;
  std::atomic<bool> done_ = false;
  std::jthread thread_;
};

class TopScreen {
 public:
  TopScreen(Context& context, const TopScreenRequest& request)
      : context_(context),
        request_(request),
        names_(context.project().server_names(request.servers)),
        woken_(make_pipe()) {
    for (const UniqueFd* end : {&woken_.read, &woken_.write}) {
      ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
    }
    for (const std::string& name : names_) {
      samples_.emplace_back().server = name;
    }
  }

  void run() {
    begin();
    {
      Keyboard keyboard(context_);
      show(keyboard);
    }
    if (ending_) {  // the screen is gone; Ctrl-C ends the waiting
      context_.terminal.notice(std::string(trim(note_)));
      ending_->answer()();
      context_.cancel.check();
      context_.terminal.notice(note_);
    }
  }

 private:
  enum class Mode { servers, text, follow, confirm };

  void show(Keyboard& keyboard) {
    const TerminalSide side = keyboard.side();
    keyboard_ = &keyboard;
    if (context_.terminal.stdin_is_terminal()) {
      side.begin();
      inputs_.push_back(side.input);
    }
    inputs_.push_back(side.resized);
    resized_ = side.resized;
    inputs_.push_back(woken_.read.get());
    context_.on_event = [this](const Event& event) {  // on the thread of any Asking
      const std::lock_guard lock(events_mutex_);
      events_.push_back(event);
      static_cast<void>(!::write(woken_.write.get(), "e", 1));
    };
    context_.terminal.set_cancel(context_.cancel);  // a screen that stands still must not hold back a signal
    ui::FullScreen screen(context_.terminal.out_descriptor());
    screen_ = &screen;
    draw();
    watch();
    reading_.reset();
    keyboard.finish();
  }

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
    if (mode_ == Mode::follow && !reading_) {
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
    for (const int sign : {resized_, woken_.read.get()}) {
      while (::read(sign, bytes.data(), bytes.size()) > 0) {
      }
    }
    take_answers();
    bool ended = false;
    if (has_keys() &&
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

  bool has_keys() const { return inputs_.size() > 2; }

  void take_answers() {
    std::vector<Event> events;
    {
      const std::lock_guard lock(events_mutex_);
      events.swap(events_);
    }
    for (const Event& event : events) {
      note_ = plain_message(context_.terminal.captured([&] { context_.show(event); }));
    }
    for (std::unique_ptr<Asking>* asking : {&reading_, &ending_}) {
      if (*asking && (*asking)->done()) {
        const std::unique_ptr<Asking> ended = std::move(*asking);
        ended->answer()();
      }
    }
  }
  void ask(std::unique_ptr<Asking>& asking, std::function<Asking::Show(const Cancel&)> work) {
    asking.reset();  // an earlier question, whose answer nobody waits for
    asking = std::make_unique<Asking>(woken_.write.get(),
                                      [this, work = std::move(work)](const Cancel& cancel) -> Asking::Show {
                                        try {
                                          return work(cancel);
                                        } catch (const Error& error) {
                                          return [this, text = error.message()] { note_ = text; };
                                        }
                                      });
  }

  // False ends the command.
  bool press(TopKey key) {
    note_.clear();
    if (key == TopKey::suspend) {
      suspend();
      return true;
    }
    if (mode_ == Mode::confirm) {
      mode_ = Mode::servers;
      if (key == TopKey::yes) {
        kill();
      }
      return true;
    }
    if (key == TopKey::page_up || key == TopKey::page_down) {
      const std::size_t page = std::max<std::size_t>(context_.terminal.rows(), 4) - 3;
      top_ = key == TopKey::page_down ? top_ + page : top_ - std::min(top_, page);
      return true;
    }
    if (mode_ != Mode::servers) {
      if (key == TopKey::leave) {
        mode_ = Mode::servers;
        top_ = 0;
        reading_.reset();
      }
      return true;
    }
    return press_in_list(key);
  }

  bool press_in_list(TopKey key) {
    switch (key) {
      case TopKey::up:
        move(-1);
        break;
      case TopKey::down:
        move(1);
        break;
      case TopKey::help:
        show_text("Keys", top_help());
        break;
      case TopKey::leave:
        return false;
      case TopKey::follow:
      case TopKey::stacks:
      case TopKey::kill:
      case TopKey::kill_launch:
        act(key);
        break;
      default:
        break;
    }
    return true;
  }

  void act(TopKey key) {
    const std::optional<Job> job = chosen();
    if (!job) {
      note_ = all_jobs().empty() ? "no job of this project runs" : "choose a job with the arrow keys first";
    } else if (key == TopKey::kill || key == TopKey::kill_launch) {
      ask_before_kill(*job, key == TopKey::kill_launch);
    } else if (key == TopKey::stacks) {
      read_stacks(*job);
    } else {
      mode_ = Mode::follow;
      title_ = describe(*job) + ": " + job->command;
      text_.clear();
      reading_.reset();
      read_output();
    }
  }

  void show_text(std::string title, std::vector<std::string> lines) {
    mode_ = Mode::text;
    title_ = std::move(title);
    text_ = std::move(lines);
    top_ = 0;
  }

  // Whether the job's server does not answer; then it is not asked for more.
  bool silent(const Job& job) {
    const auto found = std::ranges::find(samples_, job.server, &ServerSample::server);
    const auto interval_s = std::chrono::ceil<std::chrono::seconds>(request_.interval).count();
    const bool is_silent =
        found != samples_.end() &&
        (found->error || (found->heard_at && now_seconds() - *found->heard_at > 3 * interval_s + 3));
    if (is_silent) {
      note_ = job.server + " does not answer";
    }
    return is_silent;
  }

  // The last lines that fit on the screen.
  void read_output() {
    const std::optional<Job> job = chosen();
    if (!job) {
      note_ = "the job has ended";
      return;
    }
    if (silent(*job)) {
      return;
    }
    ask(reading_, [this, job = *job, rows = context_.terminal.rows()](const Cancel& cancel) -> Asking::Show {
      FollowRequest request;
      request.lines = static_cast<int>(rows);
      request.follow = false;
      std::array<std::string, 2> output;
      request.on_output = [&](std::size_t, OutputStream stream, std::string_view data) {
        append_end(output[stream == OutputStream::out ? 0 : 1], data);
      };
      const FollowResult result = context_.project().follow({job}, request, cancel);
      std::vector<std::string> text;
      for (const std::string& stream : output) {
        for (const std::string& line : split(last_lines(stream, rows), '\n')) {
          text.push_back(line.substr(line.rfind('\r') == std::string::npos ? 0 : line.rfind('\r') + 1));
        }
      }
      return [this, text, errors = result.errors] {
        text_ = text;
        for (const Error& error : errors) {
          note_ = error.message();
        }
      };
    });
  }

  void read_stacks(const Job& job) {
    if (silent(job)) {
      return;
    }
    note_ = "asking for stacks …";
    ask(reading_, [this, job](const Cancel& cancel) -> Asking::Show {
      const StacksResult result = context_.project().stacks({job}, cancel);
      return [this, job, lines = lines_of(result)] {
        note_.clear();
        show_text("Stacks of " + describe(job), lines);
      };
    });
  }

  static std::vector<std::string> lines_of(const StacksResult& result) {
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
    return lines;
  }

  // Asks about the job, or about its launch; what is to be ended is fixed now, whatever the screen shows
  // later.
  void ask_before_kill(const Job& job, bool launch) {
    if (ending_) {
      note_ = fmt::format("still ending {} …", describe(to_end_));
      return;
    }
    std::vector<Job> others = job.launch ? context_.project().with_launch({job}) : std::vector<Job>();
    std::erase_if(others, [&](const Job& other) { return other.id == job.id || is_final(other.state); });
    to_end_ = {job};
    others_ = others.size();
    if (launch) {
      to_end_.insert(to_end_.end(), others.begin(), others.end());
      others_ = 0;
    }
    mode_ = Mode::confirm;
  }

  void kill() {
    const std::string what = describe(to_end_);
    note_ = fmt::format("ending {} …", what);
    const std::string others =
        others_ > 0 ? fmt::format("; {} (X ends {})", others_go_on(), others_ == 1 ? "it" : "them") : "";
    ask(ending_, [this, what, others, jobs = to_end_](const Cancel& cancel) -> Asking::Show {
      const KillResult result = context_.project().kill(jobs, {}, cancel);
      const std::string text = result.errors.empty() ? fmt::format("{}: {}", what, outcome_of(result))
                                                     : result.errors.front().message();
      return [this, text = text + others] { note_ = text; };
    });
  }

  std::string others_go_on() const {
    return fmt::format("{} {} on", counted(others_, "other rank"), others_ == 1 ? "goes" : "go");
  }

  static std::string outcome_of(const KillResult& result) {
    using Outcome = KillResult::Entry::Outcome;
    const auto has = [&](Outcome outcome) {
      return std::ranges::find(result.entries, outcome, &KillResult::Entry::outcome) != result.entries.end();
    };
    if (result.entries.empty()) {
      return "nothing is known of it";
    }
    if (has(Outcome::survivors)) {
      return "some of its processes live on; see: remote job-kill";
    }
    if (has(Outcome::refused)) {
      return "it was left alone; see: remote job-kill";
    }
    return result.entries.size() == 1 ? "it is ended" : "they are ended";
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
      // The question comes first: a narrow screen cuts the end.
      const std::string rest =
          others_ == 0 ? "? [y/N] " : fmt::format(" alone? [y/N]  {} (X: all)", others_go_on());
      return line_of(fmt::format("End {}{}", describe(to_end_), rest), ui::Style::yellow);
    }
    if (!note_.empty()) {
      return line_of(trim(note_), ui::Style::yellow);
    }
    const std::string more = below_ > 0 ? counted(below_, "line") + " below   " : "";
    const char* text = !has_keys() ? "Ctrl-C ends it"
                       : mode_ == Mode::servers
                           ? "arrows choose   f follow   s stacks   x end job   X launch   ? help   q quit"
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
  std::vector<Job> to_end_;  // what the question is about
  std::size_t others_ = 0;   // how many unfinished ranks of its launch it is not about
  bool show_selected_ = false;
  std::size_t top_ = 0;    // the first line that is shown
  std::size_t below_ = 0;  // how many lines there are behind the last
  std::chrono::steady_clock::time_point drawn_;
  std::size_t skipped_ = 0;
  Pipe woken_;  // written where an answer or an event has come
  std::mutex events_mutex_;
  std::vector<Event> events_;
  std::unique_ptr<Asking> reading_;  // the output or the stacks of a job
  std::unique_ptr<Asking> ending_;
};

}  // namespace

int show_top_screen(Context& context, const TopScreenRequest& request) {
  TopScreen(context, request).run();
  return 0;
}

}  // namespace remote::cli
