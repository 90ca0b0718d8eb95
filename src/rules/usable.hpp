#pragma once

#include <remote/facts.hpp>
#include <remote/usable.hpp>

// Counts what the ranks of a launch may use of a server. Launches, leases and reports all count here.

namespace remote::rules {

// A quota of processor time is rounded up.
UsableCpus count_cpus(const ServerFacts& facts);
UsableMemory count_memory(const ServerFacts& facts);
// The GPUs of the first vendor that has any.
UsableGpus count_gpus(const GpuFacts& facts);

}  // namespace remote::rules
