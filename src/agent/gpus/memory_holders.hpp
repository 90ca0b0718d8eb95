#pragma once

#include <chrono>
#include <set>

#include "agent/host/host.hpp"

namespace remote::agent {

// The pids of processes that hold GPU memory according to nvidia-smi, including dead ones whose memory the
// driver has not released. Empty if nvidia-smi is missing or exceeds the limit, or if no process can be
// started.
std::set<int> find_memory_holders(const Host& host, std::chrono::milliseconds limit);

}  // namespace remote::agent
