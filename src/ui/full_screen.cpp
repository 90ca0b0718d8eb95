#include "ui/full_screen.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

namespace remote::ui {
namespace {

// xterm's private modes, which all current terminals support: 1049 is the alternate screen, 25 the cursor,
// and 7 wrapping of long lines.
constexpr std::string_view enter_sequence = "\033[?1049h\033[?25l\033[?7l";
constexpr std::string_view leave_sequence = "\033[?7h\033[?25h\033[?1049l";

// The data for the signal handlers.
struct SavedScreen {
  std::atomic<int> tty{-1};  // the terminal that currently shows the full screen
  struct sigaction stop_action {};
};

SavedScreen& saved_screen() {
  static SavedScreen one;
  return one;
}

void write_sequence(int tty, std::string_view sequence) noexcept {
  // If the terminal is gone, a failed write does not matter.
  static_cast<void>(::write(tty, sequence.data(), sequence.size()) < 0);
}

extern "C" void on_stop_signal(int) {
  const int saved_errno = errno;
  const int tty = saved_screen().tty;
  leave_full_screen();
  std::raise(SIGSTOP);
  // The process continues here.
  if (tty >= 0) {
    write_sequence(tty, enter_sequence);
    saved_screen().tty = tty;
  }
  errno = saved_errno;
}

}  // namespace

void leave_full_screen() noexcept {
  const int saved_errno = errno;
  if (const int tty = saved_screen().tty.exchange(-1); tty >= 0) {
    write_sequence(tty, leave_sequence);
  }
  errno = saved_errno;
}

FullScreen::FullScreen(int tty) : tty_(tty) {
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTSTP, nullptr, &saved_screen().stop_action);
  if (saved_screen().stop_action.sa_handler != SIG_IGN) {
    ::sigaction(SIGTSTP, &action, nullptr);
  }
  enter();
}

FullScreen::~FullScreen() {
  leave_full_screen();
  ::sigaction(SIGTSTP, &saved_screen().stop_action, nullptr);
}

void FullScreen::enter() {
  if (saved_screen().tty < 0) {
    saved_screen().tty = tty_;
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
  // Erase each line before writing it. After a line that fills the width, the cursor is on its last cell,
  // which would be erased.
  std::string text = "\033[H";
  for (std::size_t i = 0; i < shown; ++i) {
    text += (i == 0 ? "\033[2K" : "\r\n\033[2K") + lines[i] + "\033[0m";
  }
  if (!last.empty()) {
    return text + (shown == 0 ? "\033[2K" : "\r\n\033[2K") + last;
  }
  return shown < room ? text + "\r\n\033[J" : text;  // erases the rest of the previous frame
}

}  // namespace remote::ui
