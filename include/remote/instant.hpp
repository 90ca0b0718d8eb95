#pragma once

#include <chrono>

// Instants are in UTC and by this machine's clock: those that a server told are shifted by the measured
// difference of the two clocks. One that is not optional is the epoch where it is not known.

namespace remote {

using Instant = std::chrono::sys_seconds;
// An Instant becomes one by itself; std::chrono::floor<std::chrono::seconds>() takes it back.
using ExactInstant = std::chrono::sys_time<std::chrono::milliseconds>;

}  // namespace remote
