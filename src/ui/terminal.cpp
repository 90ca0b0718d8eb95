#include "ui/terminal.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <remote/error.hpp>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uniwidth.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "ui/silence.hpp"

namespace remote::ui {
namespace {

// poll(2) guarantees this much free space in a pipe (PIPE_BUF), so a piece of this size never blocks.
constexpr std::size_t sure_piece = 4096;

bool color_wanted(bool is_terminal) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return is_terminal && (no_color == nullptr || *no_color == '\0') &&
         (term == nullptr || std::strcmp(term, "dumb") != 0);
}

std::string paint(bool color, Style style, std::string_view text) {
  if (!color || style == Style::plain) {
    return std::string(text);
  }
  // Indexed by Style. SGR codes, ECMA-48 8.3.117.
  constexpr std::array codes = {"0", "1", "2", "31", "32", "33", "34", "35", "36"};
  const std::string code = codes.at(static_cast<std::size_t>(style));
  return "\033[" + code + "m" + std::string(text) + "\033[0m";
}

std::size_t width_of(char32_t code) {
  const int width = code >= ' ' && code < 0x7F ? 1 : ::uc_width(code, "UTF-8");
  return static_cast<std::size_t>(std::max(0, width));  // -1 for control characters
}

// Reads a line without its newline; nullopt if the input ends before that. Throws Interrupted.
std::optional<std::string> read_line(int fd, const Cancel& cancel) {
  std::string line;
  for (;;) {
    std::array<pollfd, 2> slots{{{fd, POLLIN, 0}, {cancel.fd(), POLLIN, 0}}};
    ::poll(slots.data(), slots.size(), -1);
    cancel.check();
    if (slots[0].revents == 0) {
      continue;
    }
    char c = 0;
    const ssize_t count = uninterrupted([&] { return ::read(fd, &c, 1); });
    if (count != 1) {
      return std::nullopt;
    }
    if (c == '\n') {
      return line;
    }
    line += c;
  }
}

// Adds carriage returns, because a raw terminal does not start a new line at the left edge.
std::string with_returns(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += c == '\n' ? "\r\n" : std::string(1, c);
  }
  return result;
}

// Input without echo has not moved the cursor, so this prints a newline.
struct NewLine {
  int tty;
  ~NewLine() { write_all(tty, "\n"); }
};

// Terminals count as the same file, because they are the user's.
bool are_one_file(int one, int other) {
  struct stat first {};
  struct stat second {};
  return (::isatty(one) == 1 && ::isatty(other) == 1) ||
         (::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 && first.st_dev == second.st_dev &&
          first.st_ino == second.st_ino);
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] >= ' ' && text[at] <= '~') {
      ++width;
      ++at;
      continue;
    }
    const Utf8Char c = utf8_at(text, at);
    width += width_of(c.code);
    at += c.length;
  }
  return width;
}

std::string shorten(std::string_view text, std::size_t width) {
  std::size_t used = 0;
  std::size_t cut = 0;  // the end of the text that fits together with the "…"
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = utf8_at(text, at);
    used += width_of(c.code);
    if (used > width) {
      return width == 0 ? std::string() : std::string(text.substr(0, cut)) + "…";
    }
    at += c.length;
    if (used + 1 <= width) {
      cut = at;
    }
  }
  return std::string(text);
}

Terminal::Terminal(const Descriptors& streams)
    : streams_(streams),
      out_terminal_(::isatty(streams.out) == 1),
      err_terminal_(::isatty(streams.err) == 1),
      is_one_file_(are_one_file(streams.out, streams.err)) {
  set_color(Color::automatic);
}

void Terminal::set_color(Color color) {
  out_color_ = color == Color::always || (color == Color::automatic && color_wanted(out_terminal_));
  err_color_ = color == Color::always || (color == Color::automatic && color_wanted(err_terminal_));
}

bool Terminal::stdin_is_terminal() const {
  return ::isatty(streams_.in) == 1;
}

bool Terminal::has_keyboard() const {
  return stdin_is_terminal() && ::tcgetpgrp(streams_.in) == ::getpgrp();
}

bool Terminal::in_background() const {
  const pid_t group = ::tcgetpgrp(streams_.err);
  return group >= 0 && group != ::getpgrp();  // -1: not the terminal of this session
}

std::size_t Terminal::columns() const {
  winsize size{};
  for (const int fd : {streams_.err, streams_.out}) {
    if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
      return size.ws_col;
    }
  }
  return 80;
}

std::size_t Terminal::rows() const {
  winsize size{};
  for (const int fd : {streams_.err, streams_.out}) {
    if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0) {
      return size.ws_row;
    }
  }
  return 24;
}

std::string Terminal::paint_out(Style style, std::string_view text) const {
  return paint(out_color_, style, text);
}

std::string Terminal::paint_err(Style style, std::string_view text) const {
  return paint(err_color_, style, text);
}

// Returns true when the descriptor accepts data, and false if it does not and the user wants to stop.
bool Terminal::wait_writable(int fd) const {
  for (;;) {
    std::array<pollfd, 2> slots{{{fd, POLLOUT, 0}, {cancel_->fd(), POLLIN, 0}}};
    if (::poll(slots.data(), slots.size(), -1) < 0 && errno != EINTR) {
      return true;  // the write reports the error
    }
    if (slots[0].revents != 0) {
      return true;
    }
    if (cancel_->cancelled()) {
      return false;
    }
  }
}

void Terminal::out(std::string_view text) {
  std::unique_lock lock(mutex_);
  answered_.wait(lock, [this] { return !asking_; });
  while (!text.empty()) {
    std::size_t piece = text.size();
    if (cancel_) {
      piece = std::min(piece, sure_piece);
      wait_writable(streams_.out);
      cancel_->check();
    }
    if (!write_all(streams_.out, text.substr(0, piece))) {
      if (errno == EPIPE) {
        // In `remote … | head`, the reader exits early, which is not an error. The program dies by the
        // signal, like any other. The library may have blocked it on this thread.
        std::signal(SIGPIPE, SIG_DFL);
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGPIPE);
        ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
        std::raise(SIGPIPE);
      }
      throw Error("cannot write to stdout", std::generic_category().message(errno),
                  "is the disk full, or has the reader of the pipe ended?");
    }
    text.remove_prefix(piece);
  }
}

std::string Terminal::captured(const std::function<void()>& print) {
  struct Redirection {
    Terminal& terminal;
    std::string text{};
    explicit Redirection(Terminal& given) : terminal(given) { set(&text); }
    ~Redirection() { set(nullptr); }
    void set(std::string* target) {
      const std::lock_guard lock(terminal.mutex_);
      terminal.capture_ = target;
    }
  } redirection(*this);
  print();
  return redirection.text;
}

// The caller must hold mutex_.
void Terminal::write_err(std::string_view text) {
  const std::string returned = raw_ && err_terminal_ ? with_returns(text) : "";
  if (!returned.empty()) {
    text = returned;
  }
  while (!text.empty()) {
    const std::size_t piece = cancel_ ? std::min(text.size(), sure_piece) : text.size();
    if (cancel_ && !wait_writable(streams_.err)) {
      return;
    }
    if (!write_all(streams_.err, text.substr(0, piece))) {
      return;  // a closed stderr is not a reason to stop, because the command's work continues
    }
    text.remove_prefix(piece);
  }
}

void Terminal::err(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (capture_ != nullptr) {
    *capture_ += text;
  } else if (asking_) {
    held_ += text;
  } else if (live_.empty()) {
    write_err(text);
  } else {
    write_err(without_live() + std::string(text) + live_);
  }
}

// The sequence that removes the live rows from the screen. The cursor must be at the end of the last one.
std::string Terminal::without_live() const {
  if (live_.empty()) {
    return "";
  }
  const auto others = std::ranges::count(live_, '\n');
  return "\r" + (others > 0 ? "\033[" + std::to_string(others) + "A" : std::string()) + "\033[J";
}

void Terminal::set_live(const std::string& rows, std::string_view above) {
  const std::lock_guard lock(mutex_);
  if (asking_) {
    held_ += above;
  } else {
    write_err(without_live() + std::string(above) + rows);
  }
  live_ = rows;
}

// During its lifetime, the screen belongs to a question.
class Terminal::Question {
 public:
  explicit Question(Terminal& terminal) : terminal_(terminal), turn_(terminal.question_mutex_) {
    const std::lock_guard lock(terminal_.mutex_);
    terminal_.write_err(terminal_.without_live());
    terminal_.asking_ = true;
  }
  ~Question() {
    const std::lock_guard lock(terminal_.mutex_);
    terminal_.asking_ = false;
    terminal_.write_err(std::exchange(terminal_.held_, {}) + terminal_.live_);
    terminal_.answered_.notify_all();
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

 private:
  Terminal& terminal_;
  const std::lock_guard<std::mutex> turn_;
};

void Terminal::pass_out(std::string_view text) {
  out(text);
  is_within_out_line_ = text.empty() ? is_within_out_line_.load() : text.back() != '\n';
}

void Terminal::pass_err(std::string_view text) {
  err(text);
  is_within_err_line_ = text.empty() ? is_within_err_line_.load() : text.back() != '\n';
}

void Terminal::end_open_line() {
  const bool is_within_out_line = is_within_out_line_.exchange(false) && is_one_file_;
  if (is_within_err_line_.exchange(false) || is_within_out_line) {
    err("\n");
  }
}

void Terminal::break_line() {
  is_within_out_line_ = is_within_err_line_ = false;
  err("\n");
}

void Terminal::message(std::string_view line) {
  end_open_line();
  err(std::string(line) + "\n");
}

void Terminal::notice(std::string_view line, Style style) {
  if (!quiet_) {
    message(paint_err(style, visible_text(line)));
  }
}

void Terminal::warning(std::string_view line) {
  message(paint_err(Style::yellow, "warning:") + " " + visible_text(line));
}

std::optional<std::string> Terminal::ask_secret(const std::string& prompt, const Cancel& cancel) {
  const UniqueFd tty(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!tty || ::isatty(tty.get()) != 1) {
    return std::nullopt;
  }
  cancel.check();
  const Question question(*this);
  cancel.check();
  const NewLine after{tty.get()};
  const Silence silence(tty.get());
  write_all(tty.get(), prompt);
  return read_line(tty.get(), cancel);
}

std::optional<std::string> Terminal::ask(const std::string& prompt, const Cancel& cancel) {
  if (!stdin_is_terminal()) {
    return std::nullopt;
  }
  return ask_stdin(prompt, cancel);
}

std::optional<std::string> Terminal::ask_stdin(const std::string& prompt, const Cancel& cancel) {
  const Question question(*this);
  const auto write = [this](std::string_view text) {
    const std::lock_guard lock(mutex_);
    write_err(text);
  };
  write(prompt);
  auto line = read_line(streams_.in, cancel);
  if (!line || !stdin_is_terminal()) {
    write("\n");  // the user's typing has not moved the cursor
  }
  return line;
}

Terminal::Input Terminal::stdin_input(std::chrono::milliseconds patience) const {
  pollfd slot{streams_.in, POLLIN, 0};
  if (::poll(&slot, 1, static_cast<int>(patience.count())) <= 0) {
    return Input::nothing_yet;
  }
  int bytes = 0;  // EOF also counts as readable
  return ::ioctl(streams_.in, FIONREAD, &bytes) == 0 && bytes > 0 ? Input::some : Input::end;
}

}  // namespace remote::ui
