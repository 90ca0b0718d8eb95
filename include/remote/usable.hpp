#pragma once

#include <vector>

#include <remote/gpu.hpp>

// What the ranks of a launch may use of a server.

namespace remote {

struct UsableGpus {
  GpuVendor vendor = GpuVendor::nvidia;  // the first one that has GPUs there
  std::vector<int> indices{};            // those of the vendor's program
  int lost = 0;                          // further GPUs that do not answer

  int count() const { return static_cast<int>(indices.size()); }
};

}  // namespace remote
