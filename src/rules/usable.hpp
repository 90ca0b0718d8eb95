#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <remote/facts.hpp>
#include <remote/usable.hpp>

// Computes which resources of a server the ranks of a launch may use. Launches, leases and reports all use
// these functions.

namespace remote::rules {

// Rounds up a quota of processor time.
UsableCpus count_cpus(const ServerFacts& facts);
UsableMemory count_memory(const ServerFacts& facts);
// The variables that hide GPUs from programs, of all vendors.
constexpr std::array<std::string_view, 4> visibility_variables{"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                                               "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"};

// The GPUs of the first vendor that has any. `given`: variables that the launch sets. They override those of
// the login, and the prologue's override both.
UsableGpus count_gpus(const GpuFacts& facts,
                      const std::vector<std::pair<std::string, std::string>>& given = {});

// Whether ranks on both servers would use the same GPU, because these are two names of one machine. `gpus`
// are the indices of the GPUs that a server's ranks use; empty: all.
bool share_gpus(const ServerFacts& one, const std::vector<int>& gpus, const ServerFacts& other,
                const std::vector<int>& other_gpus);

// The program that does not respond for GPUs that ranks would use; nullptr if there is none.
const GpuTool* find_failed_tool(const GpuFacts& facts);

}  // namespace remote::rules
