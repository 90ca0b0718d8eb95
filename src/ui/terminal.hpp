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

// How many cells of a terminal a text takes: CJK and emoji take two, combining marks none. Whatever the
// locale says: the text is UTF-8. Control characters count nothing (see visible_line()).
std::size_t display_width(std::string_view text);

// The text, or as much of its beginning as fits into `width` cells with "…" behind it.
std::string shorten(std::string_view text, std::size_t width);

// The descriptors of a terminal or of what stands in for one. Not closed by those who use them.
struct Descriptors {
  int in = 0;
  int out = 1;
  int err = 2;
};

// Where a command prints: data to stdout, everything else to stderr. Every function may be called from any
// thread; each call's text comes out whole.
class Terminal {
 public:
  explicit Terminal(const Descriptors& streams = {});

  // automatic: coloured where the stream is a terminal and NO_COLOR (no-color.org) is unset or empty.
  void set_color(Color color);
  void set_quiet(bool quiet) { quiet_ = quiet; }
  bool quiet() const { return quiet_; }
  // From now on lines of a log may come at any time, so nothing may be drawn that has to be erased later.
  void set_logging() { logging_ = true; }
  // From now on a reader that reads nothing cannot hold back a cancel: out() then throws Interrupted, and the
  // other functions drop what stderr does not take. Call before other threads print.
  void set_cancel(const Cancel& cancel) { cancel_ = cancel; }

  bool stdout_is_terminal() const { return out_terminal_; }
  bool stderr_is_terminal() const { return err_terminal_; }
  // Whether what is on stderr can be redrawn.
  bool can_redraw() const { return err_terminal_ && !logging_; }
  bool stdin_is_terminal() const;
  // Whether the shell has put this program into the background, where rows that are drawn would go into what
  // the user types.
  bool in_background() const;
  // Whether a key that is typed now goes to this program: stdin is a terminal, and no other job of the shell
  // has it.
  bool has_keyboard() const;
  int input() const { return streams_.in; }
  // While stdin's terminal is raw (RawTerminal), lines on stderr begin at its left edge all the same.
  void set_raw(bool raw) { raw_ = raw; }
  // Columns of stderr's (else stdout's) terminal; 80 when there is none.
  std::size_t columns() const;
  // Rows of stderr's (else stdout's) terminal; 24 when there is none.
  std::size_t rows() const;
  int out_descriptor() const { return streams_.out; }

  // The text in this style for stdout or stderr; unchanged where that stream has no colour.
  std::string paint_out(Style style, std::string_view text) const;
  std::string paint_err(Style style, std::string_view text) const;

  void out(std::string_view text);  // raw bytes to stdout; throws Error when stdout is gone
  void err(std::string_view text);  // raw bytes to stderr
  // The same for the output of a server's command, whose last line may have no newline.
  void pass_out(std::string_view text);
  void pass_err(std::string_view text);
  // Ends the line that was passed on last, if it is not ended and the next message would go behind it.
  void end_open_line();
  // A new line on stderr behind what the terminal itself has printed: "^C".
  void break_line();
  // Rows that stay below all that is printed to stderr, until others take their place; without a newline at
  // the end, and each shorter than the terminal is wide. "": none. `above` is printed before. For a terminal.
  void set_live(const std::string& rows, std::string_view above = {});
  // A line to stderr that is painted already; on a new line as notice().
  void message(std::string_view line);
  // A line to stderr, not with --quiet; on a new line, if the output that was passed on there has not ended
  // its last one. Its control characters are made visible, so it may quote anything.
  void notice(std::string_view line, Style style = Style::plain);
  // "warning: …" to stderr, also with --quiet; it may quote anything too.
  void warning(std::string_view line);

  // What `print` writes to stderr, which does not get it.
  std::string captured(const std::function<void()>& print);

  // Asks on the terminal (/dev/tty) without echo; nullopt when there is none or input ended.
  // Throws Interrupted; the terminal echoes again, whatever ends the process (see Silence). What is printed
  // while a question stands there comes out behind the answer; live rows are gone meanwhile.
  std::optional<std::string> ask_secret(const std::string& prompt, const Cancel& cancel);
  // Asks on the terminal, with echo; nullopt when stdin is none. Throws Interrupted.
  std::optional<std::string> ask(const std::string& prompt, const Cancel& cancel);
  // The same of stdin whatever it is, so that the answer may come from a pipe; nullopt at the end of the
  // input.
  std::optional<std::string> ask_stdin(const std::string& prompt, const Cancel& cancel);
  // What stdin has within this time: something to read, its end, or nothing yet.
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
  bool is_one_file_;                              // stdout and stderr
  std::atomic<bool> is_within_out_line_ = false;  // what was passed on last has no newline at its end
  std::atomic<bool> is_within_err_line_ = false;
  bool out_color_;
  bool err_color_;
  bool quiet_ = false;
  bool logging_ = false;
  std::atomic<bool> raw_ = false;
  std::optional<Cancel> cancel_;
  std::string* capture_ = nullptr;  // takes the place of stderr
  std::string live_;
  bool asking_ = false;
  std::string held_;  // for stderr, until the question is answered
  std::condition_variable answered_;
  std::mutex question_mutex_;  // one question at a time; locked before mutex_
  mutable std::mutex mutex_;
};

}  // namespace remote::ui
