#pragma once

#include <cstdint>
#include <optional>

#include "agent/host/host.hpp"

namespace remote::agent {

// Returns the number of processes killed by the kernel's out-of-memory killer, in this control group if the
// kernel counts that, or else on the whole machine. Returns nullopt without a counter.
std::optional<std::uint64_t> count_oom_kills(const Host& host);

}  // namespace remote::agent
