#pragma once

#include <optional>

#include <remote/terminal.hpp>

#include "base/files.hpp"
#include "cli/context.hpp"
#include "ui/silence.hpp"

namespace remote::cli {

// This process's terminal as the near side of a terminal on a server: what is typed goes there, and changes
// of the window's size too. The destructor gives the terminal its settings back. One at a time.
class Keyboard {
 public:
  explicit Keyboard(Context& context);
  ~Keyboard();
  Keyboard(const Keyboard&) = delete;
  Keyboard& operator=(const Keyboard&) = delete;

  // For a call that ends before this object does.
  TerminalSide side();
  // The command came to its own end, and has left the screen as it wants it.
  void finish() { finished_ = true; }
  // The terminal has its own settings from pause() to resume(), where it was raw.
  void pause();
  void resume();

 private:
  void begin();

  Context& context_;
  Pipe resized_;  // written by the handler of SIGWINCH
  struct sigaction before_ {};
  std::optional<ui::RawTerminal> raw_;
  bool finished_ = false;
  bool paused_ = false;
};

}  // namespace remote::cli
