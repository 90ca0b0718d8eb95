#pragma once

#include <chrono>
#include <string>

// Formats times in UTC without gmtime_r(), which would pull in the C library's time zones.

namespace remote::agent {

// "11:58:19"
std::string format_time_of_day(std::chrono::milliseconds since_epoch);
// "2026-11-24T11:58:19Z"
std::string format_utc_time(std::chrono::milliseconds since_epoch);

}  // namespace remote::agent
