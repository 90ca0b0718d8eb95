#pragma once

#include <optional>

#include <remote/terminal.hpp>

#include "base/files.hpp"
#include "cli/context.hpp"
#include "ui/silence.hpp"

namespace remote::cli {

// Connects this process's terminal to a terminal on a server: forwards input and changes of the window size.
// The destructor restores the terminal's settings. Only one may exist at a time.
class Keyboard {
 public:
  explicit Keyboard(Context& context);
  ~Keyboard();
  Keyboard(const Keyboard&) = delete;
  Keyboard& operator=(const Keyboard&) = delete;

  // For a call that returns before this object is destroyed.
  TerminalSide side();
  // The command has ended by itself, so its screen is left unchanged.
  void finish() { finished_ = true; }
  // From pause() to resume(), the terminal has its own settings instead of raw mode.
  void pause();
  void resume();

 private:
  void begin();

  Context& context_;
  Pipe resized_;  // written by the SIGWINCH handler
  struct sigaction before_ {};
  std::optional<ui::RawTerminal> raw_;
  bool finished_ = false;
  bool paused_ = false;
};

}  // namespace remote::cli
