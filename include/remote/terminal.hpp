#pragma once

#include <functional>
#include <string>

namespace remote {

// In characters.
struct TerminalSize {
  int columns = 80;
  int rows = 24;
};

// The program's side of the terminal that a command on a server gets. The library changes no terminal: a
// program that has one puts it into raw mode in `begin`, and restores it when the call is over, however it
// ends.
struct TerminalSide {
  std::string type = "dumb";             // TERM of the command
  std::function<TerminalSize()> size{};  // asked at the beginning and after each change; absent: 80 by 24
  // A descriptor: what is read from it is typed on the command's terminal, and its end is Ctrl-D there. The
  // caller keeps it open. -1: nothing is typed.
  int input = -1;
  // `input` is a terminal. It has no end but that it is lost, which is no Ctrl-D of its user.
  bool input_is_terminal = false;
  // A non-blocking descriptor with something to read once the size has changed; the library reads it empty.
  // -1: the size does not change.
  int resized = -1;
  // Called once, before the first byte of `input` is read: from now on the command gets what is typed.
  std::function<void()> begin{};
};

}  // namespace remote
