#include "ui/full_screen.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

namespace remote::ui {
namespace {

// xterm's private modes, which all terminals of today know: 1049 the other screen, 25 the cursor, 7 whether
// long lines wrap.
constexpr std::string_view enter_sequence = "\033[?1049h\033[?25l\033[?7l";
constexpr std::string_view leave_sequence = "\033[?7h\033[?25h\033[?1049l";

// Signals that end a process. SIGINT and SIGTERM are not among them: they cancel (see cli.cpp).
constexpr std::array deadly = {SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

// What the handlers need.
struct Saved {
  std::atomic<int> tty{-1};  // where the full screen stands now
  std::array<struct sigaction, deadly.size()> deadly_actions{};
  struct sigaction stop_action {};
};

Saved& saved() {
  static Saved one;
  return one;
}

void write_sequence(int tty, std::string_view sequence) noexcept {
  // a terminal that is gone needs no care
  static_cast<void>(::write(tty, sequence.data(), sequence.size()) < 0);
}

extern "C" void on_deadly_signal_of_screen(int number) {
  leave_full_screen();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

extern "C" void on_stop_signal(int) {
  const int saved_errno = errno;
  const int tty = saved().tty;
  leave_full_screen();
  std::raise(SIGSTOP);
  // here it goes on
  if (tty >= 0) {
    write_sequence(tty, enter_sequence);
    saved().tty = tty;
  }
  errno = saved_errno;
}

void handle(int number, void (*handler)(int), int flags, struct sigaction& before) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = flags;
  ::sigaction(number, nullptr, &before);
  if (before.sa_handler != SIG_IGN) {  // nohup
    ::sigaction(number, &action, nullptr);
  }
}

}  // namespace

void leave_full_screen() noexcept {
  const int saved_errno = errno;
  if (const int tty = saved().tty.exchange(-1); tty >= 0) {
    write_sequence(tty, leave_sequence);
  }
  errno = saved_errno;
}

FullScreen::FullScreen(int tty) : tty_(tty) {
  for (std::size_t i = 0; i < deadly.size(); ++i) {
    handle(deadly.at(i), on_deadly_signal_of_screen, static_cast<int>(SA_NODEFER | SA_RESETHAND),
           saved().deadly_actions.at(i));
  }
  handle(SIGTSTP, on_stop_signal, SA_RESTART, saved().stop_action);
  enter();
}

FullScreen::~FullScreen() {
  leave_full_screen();
  for (std::size_t i = 0; i < deadly.size(); ++i) {
    ::sigaction(deadly.at(i), &saved().deadly_actions.at(i), nullptr);
  }
  ::sigaction(SIGTSTP, &saved().stop_action, nullptr);
}

void FullScreen::enter() {
  if (saved().tty < 0) {
    saved().tty = tty_;
    write_sequence(tty_, enter_sequence);
  }
}

std::string FullScreen::frame(const std::vector<std::string>& lines, std::size_t rows) {
  const std::size_t room = std::max<std::size_t>(rows, 1);
  std::size_t shown = lines.size();
  std::string last;
  if (shown > room) {
    shown = room - 1;
    last = fmt::format("… {} more lines; a larger window shows them", lines.size() - shown);
  }
  // Each line is erased before it is written: behind a line that fills it, the cursor stands on its last
  // cell.
  std::string text = "\033[H";
  for (std::size_t i = 0; i < shown; ++i) {
    text += (i == 0 ? "\033[2K" : "\r\n\033[2K") + lines[i] + "\033[0m";
  }
  if (!last.empty()) {
    return text + (shown == 0 ? "\033[2K" : "\r\n\033[2K") + last;
  }
  return shown < room ? text + "\r\n\033[J" : text;  // what is left of the last time
}

}  // namespace remote::ui
