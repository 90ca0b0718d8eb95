#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include <remote/error.hpp>

// The user's login shell runs the commands on a server. Its startup files may print something, or make it
// exit.

namespace remote {

// The error for a server whose login shell exited before our script started. `detail`: how it exited, with
// the last lines of its stderr; "" if it exited without an error. `printed`: its stdout.
Error login_shell_ended(const std::string& detail, std::string_view printed = {});

// The error for a server that has sent nothing for this time, before our script started. `printed`: the
// output of its login shell before that.
Error login_shell_waits(const std::string& printed, std::chrono::milliseconds time);

// The error for a server whose login shell started our script, which then got no input for this time.
Error login_shell_took_input(const std::string& printed, std::chrono::milliseconds time);

// Removes the output of a login shell's startup files, which precedes our own output. The script prints a
// special line where its output begins. Not thread-safe.
class Greeting {
 public:
  // Returns the part of `data` that is our own output. It is empty until a line for which `is_last` returns
  // true. Throws Error if more than a mebibyte precedes that line, and rethrows exceptions of `is_last`.
  std::string_view strip(std::string_view data, const std::function<bool(std::string_view)>& is_last);
  bool over() const { return over_; }
  // All text before that line.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::size_t line_at_ = 0;  // offset in text_ of the incomplete line
  bool over_ = false;
};

}  // namespace remote
