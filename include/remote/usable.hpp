#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <remote/gpu.hpp>

// The resources of a server that the ranks of a launch can use.

namespace remote {

// Why ranks can use fewer processors than the server has.
enum class CpuBound {
  none,
  affinity,  // sched_setaffinity(2), or the cpuset of a control group
  quota      // a CPU quota of a control group
};

struct UsableCpus {
  int count = 1;
  int all = 1;  // of the server
  CpuBound bound = CpuBound::none;
};

struct UsableMemory {
  std::uint64_t total = 0;      // bytes
  std::uint64_t available = 0;  // of `total`
  bool is_limited = false;      // by a control group; false: the server's own memory
};

// Who set a variable that hides GPUs.
enum class HiddenBy { nobody, login, prologue, launch };

struct UsableGpus {
  GpuVendor vendor = GpuVendor::nvidia;  // the first vendor with GPUs on the server
  std::vector<int> there{};              // indices of the responding GPUs, in the vendor's numbering
  std::vector<int> indices{};            // of those that ranks see
  int unknown = 0;                       // number of additional visible GPUs, such as instances (MIG)
  int lost = 0;                          // number of GPUs that do not respond
  HiddenBy hidden_by = HiddenBy::nobody;
  std::string variable{};  // the variable that hides GPUs: "CUDA_VISIBLE_DEVICES"

  int count() const { return static_cast<int>(indices.size()) + unknown; }
};

}  // namespace remote
