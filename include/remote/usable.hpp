#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <remote/gpu.hpp>

// What the ranks of a launch may use of a server.

namespace remote {

// Why ranks may use fewer processors than a server has.
enum class CpuBound {
  none,
  affinity,  // sched_setaffinity(2), or the set of processors of a control group
  quota      // processor time of a control group
};

struct UsableCpus {
  int count = 1;
  int all = 1;  // of the server
  CpuBound bound = CpuBound::none;
};

struct UsableMemory {
  std::uint64_t total = 0;      // bytes
  std::uint64_t available = 0;  // of it
  bool is_limited = false;      // by a control group; else it is the server's
};

// Who set a variable that hides GPUs.
enum class HiddenBy { nobody, login, prologue, launch };

struct UsableGpus {
  GpuVendor vendor = GpuVendor::nvidia;  // the first one that has GPUs there
  std::vector<int> there{};              // the indices of those that answer, as in the vendor's program
  std::vector<int> indices{};            // of those that ranks see
  int unknown = 0;                       // GPUs that ranks see in addition, such as instances (MIG)
  int lost = 0;                          // further GPUs that do not answer
  HiddenBy hidden_by = HiddenBy::nobody;
  std::string variable{};  // "CUDA_VISIBLE_DEVICES": it hides GPUs

  int count() const { return static_cast<int>(indices.size()) + unknown; }
};

}  // namespace remote
