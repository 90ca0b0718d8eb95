#pragma once

#include <chrono>
#include <set>

#include "agent/host/host.hpp"

namespace remote::agent {

// The pids of processes that hold GPU memory, by nvidia-smi; also dead ones whose memory the driver has not
// released. Empty without such a program, if it takes longer than the limit, and if no process can be
// started.
std::set<int> find_memory_holders(const Host& host, std::chrono::milliseconds limit);

}  // namespace remote::agent
