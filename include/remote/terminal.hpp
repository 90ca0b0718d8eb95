#pragma once

#include <functional>
#include <string>

namespace remote {

struct TerminalSize {
  int columns = 80;
  int rows = 24;
};

// The program's side of the terminal of a command on a server. The library does not change any terminal: a
// program that has one puts it into raw mode in `begin`, and restores it when the call returns or throws.
struct TerminalSide {
  std::string type = "dumb";             // TERM of the command
  std::function<TerminalSize()> size{};  // called at the start and after each change; absent: 80 by 24
  // A file descriptor: bytes read from it are typed on the command's terminal; end of file is Ctrl-D there.
  // The caller keeps it open. -1: no input.
  int input = -1;
  // `input` is a terminal: end of file means that the terminal was lost, not that the user typed Ctrl-D.
  bool input_is_terminal = false;
  // A non-blocking file descriptor that becomes readable when the size has changed; the library drains it.
  // -1: the size never changes.
  int resized = -1;
  // Called once, before the first byte of `input` is read: from then on the command gets the input.
  std::function<void()> begin{};
};

}  // namespace remote
