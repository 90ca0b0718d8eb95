#pragma once

#include <array>
#include <csignal>

#include <termios.h>

namespace remote::ui {

// During its lifetime, signals that would kill the process call restore_terminal() first. SIGINT and SIGTERM
// are not included, because they cancel the command (see cli.cpp). Objects may be nested.
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

// Changes the settings of a terminal during its lifetime. The settings are restored however the process ends
// (except for SIGKILL). Only one object may exist.
class ChangedTerminal {
 public:
  ~ChangedTerminal();
  ChangedTerminal(const ChangedTerminal&) = delete;
  ChangedTerminal& operator=(const ChangedTerminal&) = delete;

 protected:
  // `tty` must be an open descriptor of a terminal. If its settings cannot be changed, it is left as it is.
  // `when` is the argument of tcsetattr(3), both for the change and for restoring.
  ChangedTerminal(int tty, void (*change)(termios&), int when);

 private:
  DeadlySignals signals_;
};

// A terminal that does not echo input. Input typed before or during this time is dropped.
struct Silence : ChangedTerminal {
  explicit Silence(int tty);
};

// A terminal in raw mode: every key, including Ctrl-C, is passed on as it is typed, and output is unchanged.
struct RawTerminal : ChangedTerminal {
  explicit RawTerminal(int tty);
};

// Restores the settings of the terminal. Call it before the process ends by _exit(2). It may be called from a
// signal handler, even if no terminal was changed.
void restore_terminal() noexcept;

}  // namespace remote::ui
