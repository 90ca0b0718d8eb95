#pragma once

#include <array>
#include <csignal>

#include <termios.h>

namespace remote::ui {

// As long as it lives, a signal that would end the process finds a handler, which calls restore_terminal()
// and then lets it do so. SIGINT and SIGTERM are not among them: they cancel (see cli.cpp). May stand within
// another one.
class DeadlySignals {
 public:
  DeadlySignals();
  ~DeadlySignals();
  DeadlySignals(const DeadlySignals&) = delete;
  DeadlySignals& operator=(const DeadlySignals&) = delete;

 private:
  static constexpr std::array numbers_ = {SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  std::array<struct sigaction, numbers_.size()> before_{};
};

// A terminal whose settings are changed as long as the object lives. However the process ends before (but for
// SIGKILL), the terminal gets its settings back. One at a time.
class ChangedTerminal {
 public:
  ~ChangedTerminal();
  ChangedTerminal(const ChangedTerminal&) = delete;
  ChangedTerminal& operator=(const ChangedTerminal&) = delete;

 protected:
  // `tty`: open, and a terminal. It is left alone when it cannot be changed. `when`: as tcsetattr(3) has it,
  // for the change and for its end.
  ChangedTerminal(int tty, void (*change)(termios&), int when);

 private:
  DeadlySignals signals_;
};

// A terminal that does not echo what is typed. What was typed before or during it is dropped.
struct Silence : ChangedTerminal {
  explicit Silence(int tty);
};

// A terminal that passes on every key as it is typed, Ctrl-C too, and every byte that is written as it is.
struct RawTerminal : ChangedTerminal {
  explicit RawTerminal(int tty);
};

// For who ends the process by _exit(2): the terminal gets its settings back. May be called from a signal
// handler, also when no terminal is changed.
void restore_terminal() noexcept;

}  // namespace remote::ui
