#pragma once

namespace remote::ui {

// A terminal that does not echo what is typed, as long as the object lives. However the process ends before
// (but for SIGKILL), the terminal echoes again: a signal that would end it finds a handler meanwhile, which
// then lets it do so. One at a time.
class Silence {
 public:
  // `tty`: open, and a terminal. It is left alone when it cannot be changed.
  explicit Silence(int tty);
  ~Silence();
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
};

// For who ends the process by _exit(2): the terminal echoes again. May be called from a signal handler, also
// when no terminal is silent.
void end_silence() noexcept;

}  // namespace remote::ui
