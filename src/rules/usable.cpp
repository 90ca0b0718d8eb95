#include "rules/usable.hpp"

#include <algorithm>
#include <cmath>

namespace remote::rules {

UsableCpus count_cpus(const ServerFacts& facts) {
  UsableCpus usable;
  usable.count = std::max(facts.usable_threads, 1);
  usable.all = std::max(facts.threads, usable.count);
  if (usable.count < usable.all) {
    usable.bound = CpuBound::affinity;
  }
  if (facts.cpu_limit && std::ceil(*facts.cpu_limit) < usable.count) {
    usable.count = std::max(static_cast<int>(std::ceil(*facts.cpu_limit)), 1);
    usable.bound = CpuBound::quota;
  }
  return usable;
}

UsableMemory count_memory(const ServerFacts& facts) {
  UsableMemory usable{.total = facts.memory, .available = facts.memory_available};
  if (facts.memory_limit && *facts.memory_limit < facts.memory) {
    usable.total = *facts.memory_limit;
    usable.available = std::min(usable.available, usable.total);
    usable.is_limited = true;
  }
  return usable;
}

UsableGpus count_gpus(const GpuFacts& facts) {
  using enum GpuVendor;
  UsableGpus usable;
  for (const GpuVendor vendor : {nvidia, amd, intel}) {
    for (const Gpu& gpu : facts.gpus) {
      if (gpu.vendor == vendor && gpu.lost) {
        ++usable.lost;
      } else if (gpu.vendor == vendor) {
        usable.indices.push_back(gpu.index);
      }
    }
    if (!usable.indices.empty() || usable.lost > 0) {
      usable.vendor = vendor;
      break;
    }
  }
  return usable;
}

}  // namespace remote::rules
