#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include <remote/error.hpp>

// A command on a server is run by the user's login shell, whose start files may print, or end it.

namespace remote {

// The error for a server whose login shell ended before a script of ours began. `detail`: how it ended, with
// the last lines of its stderr; "" if it ended without an error. `printed`: its stdout.
Error login_shell_ended(const std::string& detail, std::string_view printed = {});

// The error for a server that has sent nothing for this time, before a script of ours began. `printed`: what
// its login shell printed before.
Error login_shell_waits(const std::string& printed, std::chrono::milliseconds time);

// Strips what a login shell's start files print before our own output. The script says with a line of its own
// where that begins. One thread.
class Greeting {
 public:
  // Returns the part of `data` that is our own output: empty until a line has come for which `is_last`
  // returns true. Throws Error when more than a mebibyte came before, and what `is_last` throws.
  std::string_view strip(std::string_view data, const std::function<bool(std::string_view)>& is_last);
  bool over() const { return over_; }
  // All that came before that line.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::size_t line_at_ = 0;  // where the line that is not yet whole begins in text_
  bool over_ = false;
};

}  // namespace remote
