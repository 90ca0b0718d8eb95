#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace remote {

// How a process ended: with an exit code, or killed by a signal. Never use a bare int for this. Signal
// numbers are those of Linux (signal(7), x86 and ARM) even if this machine runs another system, because the
// processes run on Linux servers.
class ExitStatus {
 public:
  static ExitStatus exited(int code) { return ExitStatus(code, 0); }
  static ExitStatus signalled(int signal) { return ExitStatus(0, signal); }
  // From waitpid(2)'s status word for a local child.
  static ExitStatus from_wait(int status);

  bool success() const { return signal_ == 0 && code_ == 0; }
  std::optional<int> code() const;
  std::optional<int> signal() const;
  // What a shell would report: the code, or 128+N for signal N.
  int shell_code() const { return signal_ != 0 ? 128 + signal_ : code_; }
  // "exit 3", "SIGKILL".
  std::string describe() const;

  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;

 private:
  ExitStatus(int code, int signal) : code_(code), signal_(signal) {}
  int code_;
  int signal_;
};

// "SIGTERM" for 15; "SIG77" for a number without a name.
std::string signal_name(int number);
// Accepts "TERM", "SIGTERM", "sigterm" or "15"; nullopt if there is no such signal (including 0).
std::optional<int> signal_number(std::string_view name);

}  // namespace remote
