#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>
#include <termios.h>

#include "base/files.hpp"

namespace remote::test {

// The program, started on its own terminal as a shell would. The destructor kills it with SIGKILL.
class ProgramOnTerminal {
 public:
  // `words`: arguments of the program. `home`: its HOME. There is no SSH agent.
  ProgramOnTerminal(const std::vector<std::string>& words, const std::filesystem::path& home, int rows = 24,
                    int columns = 80);
  ~ProgramOnTerminal();
  ProgramOnTerminal(const ProgramOnTerminal&) = delete;
  ProgramOnTerminal& operator=(const ProgramOnTerminal&) = delete;

  pid_t pid() const { return pid_; }
  void type(const std::string& text) const { write_all(master_.get(), text); }
  // Resizes the terminal, as when a user drags the corner of the window.
  void resize(int rows, int columns) const;
  termios settings() const;
  // The terminal's settings before the program started.
  const termios& first_settings() const { return first_; }
  bool echoes() const { return (settings().c_lflag & ECHO) != 0; }
  // All output so far.
  const std::string& screen();
  // Waits until this text is on the screen; false if it does not appear.
  bool shows(const std::string& text);
  // Exit status as in a shell; -1 if it does not end.
  int end();

 private:
  UniqueFd master_;
  UniqueFd slave_;  // kept open so that the terminal's settings outlive the program
  pid_t pid_ = -1;
  termios first_{};
  std::string screen_;
};

}  // namespace remote::test
