#include "cli/top_screen.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "cli/keyboard.hpp"
#include "cli/show/jobs.hpp"
#include "cli/show/launches.hpp"
#include "cli/top_asking.hpp"
#include "cli/top_keys.hpp"
#include "cli/top_page.hpp"
#include "ui/full_screen.hpp"

namespace remote::cli {
namespace {

// A message as one line without colors.
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

class TopScreen {
 public:
  TopScreen(Context& context, const TopScreenRequest& request)
      : context_(context), request_(request), woken_(make_pipe()) {
    for (const UniqueFd* end : {&woken_.read, &woken_.write}) {
      ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
    }
    page_.interval = request.interval;
    for (const std::string& name : context.project().server_names(request.servers)) {
      page_.samples.emplace_back().server = name;
    }
  }

  void run() {
    begin();
    {
      Keyboard keyboard(context_);
      show(keyboard);
    }
    if (ending_) {  // the screen has been removed; Ctrl-C ends the waiting
      context_.terminal.notice(std::string(trim(page_.note)));
      ending_->answer()();
      context_.cancel.check();
      context_.terminal.notice(page_.note);
    }
  }

 private:
  using Mode = TopPage::Mode;

  void show(Keyboard& keyboard) {
    const TerminalSide side = keyboard.side();
    keyboard_ = &keyboard;
    if (context_.terminal.stdin_is_terminal()) {
      side.begin();
      inputs_.push_back(side.input);
      page_.has_keys = true;
    }
    inputs_.push_back(side.resized);
    resized_ = side.resized;
    inputs_.push_back(woken_.read.get());
    context_.on_event = [this](const Event& event) {  // on the thread of any Asking
      const std::lock_guard lock(events_mutex_);
      events_.push_back(event);
      static_cast<void>(!::write(woken_.write.get(), "e", 1));
    };
    context_.terminal.set_cancel(context_.cancel);  // a terminal that blocks must not delay a signal
    ui::FullScreen screen(context_.terminal.out_descriptor());
    screen_ = &screen;
    draw();
    watch();
    reading_.reset();
    keyboard.finish();
  }

  // Prompts for passwords before the screen is shown. The screen is shown once all servers have answered; a
  // server that takes longer than two seconds without a prompt does not delay it.
  void begin() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    std::vector<bool> heard(page_.samples.size(), false);
    WatchRequest request;
    request.servers = request_.servers;
    request.interval = std::chrono::milliseconds(500);
    request.once = true;
    request.on_sample = [&](std::size_t index, const ServerSample& sample) {
      page_.samples[index] = sample;
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
      page_.samples[index] = sample;
      changed();
    };
    request.on_wake = [this] { return on_wake(); };
    context_.project().watch(request);
  }

  // Limits redrawing if many servers answer at the same time.
  void changed() {
    const auto now = std::chrono::steady_clock::now();
    if (now - drawn_ < std::chrono::milliseconds(200) && ++skipped_ < page_.samples.size()) {
      return;
    }
    if (page_.mode == Mode::follow && !reading_) {
      read_output();
    }
    draw();
  }

  bool on_wake() {
    std::array<char, 256> bytes{};
    for (const int sign : {resized_, woken_.read.get()}) {
      while (::read(sign, bytes.data(), bytes.size()) > 0) {
      }
    }
    take_answers();
    bool ended = false;
    if (page_.has_keys &&
        context_.terminal.stdin_input(std::chrono::seconds(0)) != ui::Terminal::Input::nothing_yet) {
      const ssize_t count = ::read(context_.terminal.input(), bytes.data(), bytes.size());
      ended = count <= 0;
      typed_.append(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    }
    while (!ended && !typed_.empty()) {
      ended = !press(take_key(typed_));
      if (!ended) {
        draw();  // also between keys that were typed at once, because each may ask a question
      }
    }
    if (!ended) {
      draw();
    }
    return !ended;
  }

  void take_answers() {
    std::vector<Event> events;
    {
      const std::lock_guard lock(events_mutex_);
      events.swap(events_);
    }
    for (const Event& event : events) {
      page_.note = plain_message(context_.terminal.captured([&] { context_.show(event); }));
    }
    for (std::unique_ptr<Asking>* asking : {&reading_, &ending_}) {
      if (*asking && (*asking)->done()) {
        const std::unique_ptr<Asking> ended = std::move(*asking);
        ended->answer()();
      }
    }
  }
  void ask(std::unique_ptr<Asking>& asking, std::function<Asking::Show(const Cancel&)> work) {
    asking.reset();  // cancels an earlier request
    asking = std::make_unique<Asking>(woken_.write.get(),
                                      [this, work = std::move(work)](const Cancel& cancel) -> Asking::Show {
                                        try {
                                          return work(cancel);
                                        } catch (const Error& error) {
                                          return [this, text = error.message()] { page_.note = text; };
                                        }
                                      });
  }

  // Returns false to end the command.
  bool press(TopKey key) {
    page_.note.clear();
    if (key == TopKey::suspend) {
      suspend();
      return true;
    }
    if (page_.mode == Mode::confirm) {
      if (key == TopKey::yes) {
        page_.mode = Mode::servers;
        kill();
      } else if (key == TopKey::no || key == TopKey::enter || key == TopKey::leave) {
        page_.mode = Mode::servers;
      }
      return true;  // any other key keeps the question open
    }
    if (key == TopKey::page_up || key == TopKey::page_down) {
      page_.turn_page(key == TopKey::page_down, context_.terminal.rows());
      return true;
    }
    if (page_.mode != Mode::servers) {
      if (key == TopKey::leave) {
        page_.show_servers();
        reading_.reset();
      }
      return true;
    }
    return press_in_list(key);
  }

  bool press_in_list(TopKey key) {
    switch (key) {
      case TopKey::up:
        page_.move(-1);
        break;
      case TopKey::down:
        page_.move(1);
        break;
      case TopKey::help:
        page_.show_text("Keys", top_help());
        break;
      case TopKey::leave:
        return false;
      case TopKey::follow:
      case TopKey::enter:
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
    const std::optional<Job> job = page_.chosen();
    if (!job) {
      page_.note =
          page_.jobs().empty() ? "no job of this project runs" : "choose a job with the arrow keys first";
    } else if (key == TopKey::kill || key == TopKey::kill_launch) {
      ask_before_kill(*job, key == TopKey::kill_launch);
    } else if (key == TopKey::stacks) {
      read_stacks(*job);
    } else {
      page_.mode = Mode::follow;
      page_.title = describe(*job) + ": " + job->command;
      page_.text.clear();
      reading_.reset();
      read_output();
    }
  }

  // Whether the job's server does not answer; in that case nothing more is requested from it.
  bool silent(const Job& job) {
    const bool is_silent = page_.is_silent(job.server);
    if (is_silent) {
      page_.note = job.server + " does not answer";
    }
    return is_silent;
  }

  // Reads as many last lines as fit on the screen.
  void read_output() {
    const std::optional<Job> job = page_.chosen();
    if (!job) {
      page_.note = "the job has ended";
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
      request.on_output = [&](const JobOutput& piece) {
        std::string& all = output[piece.stream == OutputStream::out ? 0 : 1];
        const bool begins = all.empty() || all.ends_with('\n');
        append_end(all, begins && piece.rank && ranks_of(job) > 1 ? fmt::format("[{}] ", *piece.rank) : "");
        append_end(all, piece.text);
      };
      const FollowResult result = context_.project().follow({job}, request, cancel);
      std::vector<std::string> text;
      for (const std::string& stream : output) {
        for (const std::string& line : split(last_lines(stream, rows), '\n')) {
          text.push_back(line.substr(line.rfind('\r') == std::string::npos ? 0 : line.rfind('\r') + 1));
        }
      }
      return [this, text, errors = result.errors] {
        page_.text = text;
        for (const Error& error : errors) {
          page_.note = error.message();
        }
      };
    });
  }

  void read_stacks(const Job& job) {
    if (silent(job)) {
      return;
    }
    page_.note = "asking for stacks …";
    ask(reading_, [this, job](const Cancel& cancel) -> Asking::Show {
      const StacksResult result = context_.project().stacks({job}, cancel);
      return [this, job, lines = stack_lines(result)] {
        page_.note.clear();
        page_.show_text("Stacks of " + describe(job), lines);
      };
    });
  }

  // Asks about the job, or about its launch. The jobs to kill are fixed now, even if the screen changes
  // later.
  void ask_before_kill(const Job& job, bool launch) {
    if (ending_) {
      page_.note = fmt::format("still ending {} …", describe(page_.to_end));
      return;
    }
    std::vector<Job> others = job.launch ? context_.project().with_launch({job}) : std::vector<Job>();
    std::erase_if(others, [&](const Job& other) { return other.id == job.id || is_final(other.state); });
    page_.to_end = {job};
    page_.others = others.size();
    if (launch) {
      page_.to_end.insert(page_.to_end.end(), others.begin(), others.end());
      page_.others = 0;
    }
    page_.mode = Mode::confirm;
  }

  void kill() {
    const std::string what = describe(page_.to_end);
    page_.note = fmt::format("ending {} …", what);
    const std::string others = page_.others > 0 ? fmt::format("; {} (X ends {})", page_.others_go_on(),
                                                              page_.others == 1 ? "it" : "them")
                                                : "";
    ask(ending_, [this, what, others, jobs = page_.to_end](const Cancel& cancel) -> Asking::Show {
      const KillResult result = context_.project().kill(jobs, {}, cancel);
      const std::string text = result.errors.empty() ? fmt::format("{}: {}", what, outcome_of(result))
                                                     : result.errors.front().message();
      return [this, text = text + others] { page_.note = text; };
    });
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
      return "some of its processes still run; see: remote job-kill";
    }
    if (has(Outcome::refused)) {
      return "it was not ended; see: remote job-kill";
    }
    return result.entries.size() == 1 ? "it is ended" : "they are ended";
  }

  // Like Ctrl-Z in a terminal that is not in raw mode.
  void suspend() {
    keyboard_->pause();
    ::raise(SIGTSTP);
    keyboard_->resume();
    screen_->enter();
  }

  void draw() {
    const std::size_t rows = std::max<std::size_t>(context_.terminal.rows(), 3);
    const std::vector<std::string> lines = page_.lines(context_, rows);
    screen_->enter();
    context_.terminal.out(ui::FullScreen::frame(lines, rows));
    drawn_ = std::chrono::steady_clock::now();
    skipped_ = 0;
  }

  Context& context_;
  const TopScreenRequest& request_;
  TopPage page_;
  Keyboard* keyboard_ = nullptr;
  ui::FullScreen* screen_ = nullptr;
  std::vector<int> inputs_;
  int resized_ = -1;
  std::string typed_;
  std::chrono::steady_clock::time_point drawn_;
  std::size_t skipped_ = 0;
  Pipe woken_;  // written when an answer or an event has arrived
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
