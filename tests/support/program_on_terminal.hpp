#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>
#include <termios.h>

#include "base/files.hpp"

namespace remote::test {

// The program, started on a terminal of its own as a shell would. The destructor ends it by SIGKILL.
class ProgramOnTerminal {
 public:
  // `words`: behind the program's name. `home`: its HOME; there is no SSH agent.
  ProgramOnTerminal(const std::vector<std::string>& words, const std::filesystem::path& home, int rows = 24,
                    int columns = 80);
  ~ProgramOnTerminal();
  ProgramOnTerminal(const ProgramOnTerminal&) = delete;
  ProgramOnTerminal& operator=(const ProgramOnTerminal&) = delete;

  pid_t pid() const { return pid_; }
  void type(const std::string& text) const { write_all(master_.get(), text); }
  // As when a person drags the window's corner.
  void resize(int rows, int columns) const;
  termios settings() const;
  // The terminal's settings as they were before the program began.
  const termios& first_settings() const { return first_; }
  bool echoes() const { return (settings().c_lflag & ECHO) != 0; }
  // All that was written so far.
  const std::string& screen();
  // Whether this text comes to stand on the screen.
  bool shows(const std::string& text);
  // As a shell has it; -1 when it does not end.
  int end();

 private:
  UniqueFd master_;
  UniqueFd slave_;  // kept open: the terminal's settings outlive the program
  pid_t pid_ = -1;
  termios first_{};
  std::string screen_;
};

}  // namespace remote::test
