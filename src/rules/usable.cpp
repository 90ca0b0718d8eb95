#include "rules/usable.hpp"

#include <algorithm>

namespace remote::rules {

int count_cpus(const ServerFacts& facts) {
  return std::max(facts.usable_threads, 1);
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
