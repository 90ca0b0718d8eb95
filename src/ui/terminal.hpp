#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <remote/cancel.hpp>

namespace remote::ui {

enum class Color { automatic, always, never };
enum class Style { plain, bold, dim, red, green, yellow, blue, magenta, cyan };

// The number of terminal cells that a text needs: CJK and emoji need two, combining marks none. The text is
// UTF-8, regardless of the locale. Control characters count as zero (see visible_line()).
std::size_t display_width(std::string_view text);

// The text, or if it is too long, the beginning that fits into `width` cells together with "…".
std::string shorten(std::string_view text, std::size_t width);

// The descriptors of a terminal or of its replacement. They are not closed here.
struct Descriptors {
  int in = 0;
  int out = 1;
  int err = 2;
};

// Where a command prints: data to stdout, everything else to stderr. Thread-safe; the text of each call stays
// in one piece.
class Terminal {
 public:
  explicit Terminal(const Descriptors& streams = {});

  // automatic: uses colors if the stream is a terminal and NO_COLOR (no-color.org) is unset or empty.
  void set_color(Color color);
  void set_quiet(bool quiet) { quiet_ = quiet; }
  bool quiet() const { return quiet_; }
  // From now on, log lines may be printed at any time, so nothing may be drawn that has to be erased later.
  void set_logging() { logging_ = true; }
  // From now on, a reader that does not read cannot delay a cancel: out() then throws Interrupted, and the
  // other functions drop output that stderr does not accept. Call it before other threads print.
  void set_cancel(const Cancel& cancel) { cancel_ = cancel; }

  bool stdout_is_terminal() const { return out_terminal_; }
  bool stderr_is_terminal() const { return err_terminal_; }
  // Whether lines on stderr can be redrawn.
  bool can_redraw() const { return err_terminal_ && !logging_; }
  bool stdin_is_terminal() const;
  // Whether the shell has put this program into the background, where redrawn rows would disturb the user's
  // typing.
  bool in_background() const;
  // Whether keys are sent to this program: stdin is a terminal, and no other job of the shell owns it.
  bool has_keyboard() const;
  int input() const { return streams_.in; }
  // While stdin's terminal is raw (RawTerminal), lines on stderr must start with a carriage return.
  void set_raw(bool raw) { raw_ = raw; }
  // Columns of stderr's (or else stdout's) terminal; 80 if there is none.
  std::size_t columns() const;
  // Rows of stderr's (or else stdout's) terminal; 24 if there is none.
  std::size_t rows() const;
  int out_descriptor() const { return streams_.out; }

  // The text in this style, for stdout or stderr; unchanged if that stream has no colors.
  std::string paint_out(Style style, std::string_view text) const;
  std::string paint_err(Style style, std::string_view text) const;

  void out(std::string_view text);  // raw bytes to stdout; throws Error if stdout is closed
  void err(std::string_view text);  // raw bytes to stderr
  // Like out() and err(), for the output of a server's command, whose last line may lack a newline.
  void pass_out(std::string_view text);
  void pass_err(std::string_view text);
  // Ends the last passed line, if it has no newline and the next message would be appended to it.
  void end_open_line();
  // Starts a new line on stderr after text that the terminal itself has printed: "^C".
  void break_line();
  // Sets the rows that stay below everything printed to stderr, until they are replaced. They must not end
  // with a newline, and each must be narrower than the terminal. "": none. `above` is printed first. Only for
  // a terminal.
  void set_live(const std::string& rows, std::string_view above = {});
  // Prints an already styled line to stderr, on a new line like notice().
  void message(std::string_view line);
  // Prints a line to stderr, unless --quiet is set. Starts a new line if the output passed to stderr has not
  // ended its last one. Control characters are made visible, so the line may quote any text.
  void notice(std::string_view line, Style style = Style::plain);
  // Prints "warning: …" to stderr, even with --quiet. It may also quote any text.
  void warning(std::string_view line);

  // Returns the text that `print` writes to stderr, instead of printing it.
  std::string captured(const std::function<void()>& print);

  // Asks on the terminal (/dev/tty) without echo; nullopt if there is none, or the input ends. Throws
  // Interrupted. Echo is restored however the process ends (see Silence). Output printed during the question
  // appears after the answer; live rows are hidden meanwhile.
  std::optional<std::string> ask_secret(const std::string& prompt, const Cancel& cancel);
  // Asks on the terminal, with echo; nullopt if stdin is not a terminal. Throws Interrupted.
  std::optional<std::string> ask(const std::string& prompt, const Cancel& cancel);
  // Like ask(), but reads stdin even if it is not a terminal, so the answer may come from a pipe; nullopt at
  // EOF.
  std::optional<std::string> ask_stdin(const std::string& prompt, const Cancel& cancel);
  // The state of stdin after at most this time: data is available, it has ended, or neither.
  enum class Input { some, end, nothing_yet };
  Input stdin_input(std::chrono::milliseconds patience) const;

 private:
  class Question;

  bool wait_writable(int fd) const;
  void write_err(std::string_view text);
  std::string without_live() const;

  Descriptors streams_;
  bool out_terminal_;
  bool err_terminal_;
  bool is_one_file_;                              // whether stdout and stderr are the same file
  std::atomic<bool> is_within_out_line_ = false;  // the last passed output does not end with a newline
  std::atomic<bool> is_within_err_line_ = false;
  bool out_color_;
  bool err_color_;
  bool quiet_ = false;
  bool logging_ = false;
  std::atomic<bool> raw_ = false;
  std::optional<Cancel> cancel_;
  std::string* capture_ = nullptr;  // replaces stderr
  std::string live_;
  bool asking_ = false;
  std::string held_;  // output for stderr, held until the question is answered
  std::condition_variable answered_;
  std::mutex question_mutex_;  // one question at a time; lock it before mutex_
  mutable std::mutex mutex_;
};

}  // namespace remote::ui
