#include "base/clock.hpp"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

namespace remote {

Instant now_seconds() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

ExactInstant now_milliseconds() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

std::string format_utc(Instant instant) {
  const std::time_t time = instant.time_since_epoch().count();
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::optional<Instant> parse_utc(std::string_view text) {
  std::tm parts{};
  const std::string whole(text);
  const char* end = ::strptime(whole.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  const Instant instant{std::chrono::seconds(::timegm(&parts))};
  // strptime(3) also accepts other forms, such as "1:2:3", and impossible days of a month.
  return end != nullptr && instant >= Instant() && format_utc(instant) == text ? std::optional(instant)
                                                                               : std::nullopt;
}

std::string format_local_time(Instant instant) {
  const std::time_t time = instant.time_since_epoch().count();
  std::tm parts{};
  ::localtime_r(&time, &parts);
  std::string zone = "UTC";
  if (const long minutes = parts.tm_gmtoff / 60; minutes != 0) {
    zone += fmt::format("{}{}", minutes < 0 ? '-' : '+', std::abs(minutes) / 60);
    zone += minutes % 60 == 0 ? "" : fmt::format(":{:02}", std::abs(minutes) % 60);
  }
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} {}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, zone);
}

std::string format_duration(std::chrono::seconds duration) {
  const std::int64_t seconds = duration.count();
  if (seconds < 60) {
    return fmt::format("{}s", std::max<std::int64_t>(seconds, 0));
  }
  if (seconds < 3600) {
    return fmt::format("{}m {:02}s", seconds / 60, seconds % 60);
  }
  if (seconds < 86400) {
    return fmt::format("{}h {:02}m", seconds / 3600, seconds % 3600 / 60);
  }
  return fmt::format("{}d {}h", seconds / 86400, seconds % 86400 / 3600);
}

}  // namespace remote
