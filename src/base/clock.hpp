#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace remote {

// Wall-clock instants are whole seconds since the epoch (UTC) as std::int64_t wherever they are stored.
std::int64_t now_seconds();
// The same in milliseconds.
std::int64_t now_milliseconds();

// "2026-11-21T07:30:00Z" and back; nullopt for text of another form.
std::string format_utc(std::int64_t seconds);
std::optional<std::int64_t> parse_utc(std::string_view text);

// "2026-11-21 14:03:11 UTC+1" in the laptop's time zone.
std::string format_local_time(std::int64_t seconds);

// "5s", "12m", "3h 04m", "2d 5h": for tables.
std::string format_duration(std::int64_t seconds);

}  // namespace remote
