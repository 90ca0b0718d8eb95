#pragma once

#include <cstdint>

#include <remote/instant.hpp>

namespace remote {

// The time this many seconds, or milliseconds, after the epoch.
constexpr Instant instant(std::int64_t seconds) {
  return Instant(std::chrono::seconds(seconds));
}
constexpr ExactInstant exact_instant(std::int64_t milliseconds) {
  return ExactInstant(std::chrono::milliseconds(milliseconds));
}

}  // namespace remote
