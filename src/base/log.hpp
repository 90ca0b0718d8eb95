#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <remote/log.hpp>

namespace remote {

// Whether lines of this level are logged. Costs one atomic load.
bool logs(LogLevel level) noexcept;

namespace detail {
void write_log(LogLevel level, std::string_view server, std::string_view text) noexcept;
}

// Nothing is formatted if the line is not logged. A line may quote a server's text.
template <typename... Args>
void log_info(std::string_view server, fmt::format_string<Args...> format, Args&&... args) {
  if (logs(LogLevel::info)) {
    detail::write_log(LogLevel::info, server, fmt::format(format, std::forward<Args>(args)...));
  }
}
template <typename... Args>
void log_debug(std::string_view server, fmt::format_string<Args...> format, Args&&... args) {
  if (logs(LogLevel::debug)) {
    detail::write_log(LogLevel::debug, server, fmt::format(format, std::forward<Args>(args)...));
  }
}

// Measures the time since its construction.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  std::string text() const { return fmt::format("{:.3f} s", seconds()); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace remote
