#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ui/silence.hpp"

namespace remote::ui {

// The terminal's other screen, drawn anew again and again, as long as the object lives. Afterwards the first
// screen stands there as before, and nothing of this one is left in the scrollback. However the process ends
// (but for SIGKILL), the first screen comes back; with Ctrl-Z it does so until the process goes on. One at a
// time, for one thread.
class FullScreen {
 public:
  // `tty`: open, and a terminal.
  explicit FullScreen(int tty);
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  // The text of a screen of so many rows that shows these lines, as it is to be written. A screen that is too
  // small for them says how many it leaves out, and never scrolls. A line that is too long is cut.
  static std::string frame(const std::vector<std::string>& lines, std::size_t rows);
  // Goes back to this screen where something has left it: what asks for a password does.
  void enter();

 private:
  int tty_;
  DeadlySignals signals_;
};

// For who ends the process by _exit(2) or by a signal: the first screen comes back. May be called from a
// signal handler, also when there is no full screen.
void leave_full_screen() noexcept;

}  // namespace remote::ui
