#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <remote/instant.hpp>

namespace remote {

// Later times are rejected, both from servers and from files, because format_utc() uses four digits for the
// year.
inline constexpr Instant year_10000{std::chrono::seconds(253402300800)};

Instant now_seconds();
ExactInstant now_milliseconds();

// Converts to and from "2026-11-21T07:30:00Z"; nullopt for other text.
std::string format_utc(Instant instant);
std::optional<Instant> parse_utc(std::string_view text);

// "2026-11-21 14:03:11 UTC+1" in the laptop's time zone.
std::string format_local_time(Instant instant);

// "5s", "12m 09s", "3h 04m", "2d 5h"; "0s" also for negative durations. For tables.
std::string format_duration(std::chrono::seconds duration);

}  // namespace remote
