#include <algorithm>
#include <array>
#include <utility>

#include <remote/exit_status.hpp>
#include <sys/wait.h>

#include "base/strings.hpp"

namespace remote {
namespace {

using Signal = std::pair<int, std::string_view>;
constexpr std::array<Signal, 31> linux_signals{{
    {1, "HUP"},   {2, "INT"},     {3, "QUIT"},  {4, "ILL"},   {5, "TRAP"},    {6, "ABRT"},  {7, "BUS"},
    {8, "FPE"},   {9, "KILL"},    {10, "USR1"}, {11, "SEGV"}, {12, "USR2"},   {13, "PIPE"}, {14, "ALRM"},
    {15, "TERM"}, {16, "STKFLT"}, {17, "CHLD"}, {18, "CONT"}, {19, "STOP"},   {20, "TSTP"}, {21, "TTIN"},
    {22, "TTOU"}, {23, "URG"},    {24, "XCPU"}, {25, "XFSZ"}, {26, "VTALRM"}, {27, "PROF"}, {28, "WINCH"},
    {29, "IO"},   {30, "PWR"},    {31, "SYS"},
}};

}  // namespace

ExitStatus ExitStatus::from_wait(int status) {
  return WIFSIGNALED(status) ? signalled(WTERMSIG(status)) : exited(WEXITSTATUS(status));
}

std::optional<int> ExitStatus::code() const {
  return signal_ != 0 ? std::nullopt : std::optional<int>(code_);
}

std::optional<int> ExitStatus::signal() const {
  return signal_ != 0 ? std::optional<int>(signal_) : std::nullopt;
}

std::string ExitStatus::describe() const {
  return signal_ != 0 ? signal_name(signal_) : "exit " + std::to_string(code_);
}

std::string signal_name(int number) {
  const auto* known = std::ranges::find(linux_signals, number, &Signal::first);
  return "SIG" + (known != linux_signals.end() ? std::string(known->second) : std::to_string(number));
}

std::optional<int> signal_number(std::string_view name) {
  const std::string lower = lower_case(name);
  const std::string_view bare = lower.starts_with("sig") ? std::string_view(lower).substr(3) : lower;
  if (const auto number = parse_number<int>(bare)) {
    return *number >= 1 && *number <= 64 ? number : std::nullopt;
  }
  const auto* known =
      std::ranges::find(linux_signals, bare, [](const Signal& signal) { return lower_case(signal.second); });
  return known != linux_signals.end() ? std::optional(known->first) : std::nullopt;
}

}  // namespace remote
