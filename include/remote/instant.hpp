#pragma once

#include <chrono>

// Instants are in UTC, by this machine's clock: times reported by a server are corrected by the measured
// difference between the two clocks. An Instant that is not optional is the epoch if unknown.

namespace remote {

using Instant = std::chrono::sys_seconds;
// Instant converts to it implicitly; use std::chrono::floor<std::chrono::seconds>() to convert back.
using ExactInstant = std::chrono::sys_time<std::chrono::milliseconds>;

}  // namespace remote
