#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ui/silence.hpp"

namespace remote::ui {

// The terminal's alternate screen, redrawn repeatedly while the object exists. Afterwards, the normal screen
// is as before, and nothing of this one is left in the scrollback. The normal screen is restored however the
// process ends (except for SIGKILL), and after Ctrl-Z until the process continues. Only one object may exist,
// used by one thread.
class FullScreen {
 public:
  // `tty` must be an open descriptor of a terminal.
  explicit FullScreen(int tty);
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  // The text to write for a screen with this many rows and these lines. If the screen is too small, it shows
  // how many lines are omitted, and never scrolls. Long lines are cut.
  static std::string frame(const std::vector<std::string>& lines, std::size_t rows);
  // Returns to this screen after something else has left it, such as a password prompt.
  void enter();

 private:
  int tty_;
  DeadlySignals signals_;
};

// Restores the normal screen. Call it before the process ends by _exit(2) or a signal. It may be called from
// a signal handler, even if there is no full screen.
void leave_full_screen() noexcept;

}  // namespace remote::ui
