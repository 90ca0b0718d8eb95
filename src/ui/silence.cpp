#include "ui/silence.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>

#include "ui/full_screen.hpp"

namespace remote::ui {
namespace {

// The data for the handler; written before `tty` is set.
struct SavedEcho {
  std::atomic<int> tty{-1};
  int when = TCSANOW;
  termios before{};
};

SavedEcho& saved_echo() {
  static SavedEcho one;
  return one;
}

extern "C" void on_deadly_signal(int number) {
  restore_terminal();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

}  // namespace

void restore_terminal() noexcept {
  SavedEcho& one = saved_echo();
  const int saved_errno = errno;
  if (const int tty = one.tty.exchange(-1); tty >= 0) {
    ::tcsetattr(tty, one.when, &one.before);
  }
  leave_full_screen();
  errno = saved_errno;
}

DeadlySignals::DeadlySignals() {
  struct sigaction action {};
  action.sa_handler = on_deadly_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = static_cast<int>(SA_NODEFER | SA_RESETHAND);
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    ::sigaction(numbers_.at(i), nullptr, &before_.at(i));
    if (before_.at(i).sa_handler != SIG_IGN) {  // ignored by nohup
      ::sigaction(numbers_.at(i), &action, nullptr);
    }
  }
}

DeadlySignals::~DeadlySignals() {
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    ::sigaction(numbers_.at(i), &before_.at(i), nullptr);
  }
}

ChangedTerminal::ChangedTerminal(int tty, void (*change)(termios&), int when) {
  SavedEcho& one = saved_echo();
  if (::tcgetattr(tty, &one.before) != 0) {
    return;
  }
  one.when = when;
  one.tty = tty;
  termios changed = one.before;
  change(changed);
  ::tcsetattr(tty, when, &changed);
}

ChangedTerminal::~ChangedTerminal() {
  restore_terminal();
}

Silence::Silence(int tty)
    : ChangedTerminal(
          tty, [](termios& settings) { settings.c_lflag &= ~static_cast<tcflag_t>(ECHO); }, TCSAFLUSH) {}

// TCSANOW: a hanging terminal may never accept pending output.
RawTerminal::RawTerminal(int tty)
    : ChangedTerminal(
          tty, [](termios& settings) { ::cfmakeraw(&settings); }, TCSANOW) {}

}  // namespace remote::ui
