#pragma once

#include <optional>
#include <string>
#include <vector>

#include <remote/gpu.hpp>

#include "agent/gpus/tool_output.hpp"

// The outputs of the vendors' programs, and their parsers. Each parser fills in the last element of
// `facts.tools` and appends to `facts.gpus`. All throw BadAnswer.

namespace remote::agent {

struct NvidiaOutputs {
  std::vector<std::string> fields{};  // the columns of `query`
  ToolOutput query{};                 // nvidia-smi --query-gpu=FIELDS
  std::optional<ToolOutput> apps{};   // nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory,process_name
  std::optional<ToolOutput> xml{};    // nvidia-smi -q -x
  std::optional<ToolOutput> topology{};    // nvidia-smi topo -m
  std::optional<ToolOutput> kernel_log{};  // the lines of the NVIDIA driver
};
void read_nvidia(const NvidiaOutputs& outputs, GpuFacts& facts);
// nullopt if the matrix is missing or incomplete.
std::optional<GpuTopology> read_topology(const std::vector<std::string>& lines);
// Parses lines like "NVRM: Xid (PCI:0000:3b:00): 79, …"; skips others.
std::vector<XidError> read_xids(const std::vector<std::string>& lines);

struct AmdOutputs {
  std::optional<ToolOutput> rocm{};    // rocm-smi --json, or:
  ToolOutput fixed{};                  // amd-smi static --json
  std::optional<ToolOutput> metric{};  // amd-smi metric --json
};
void read_amd(const AmdOutputs& outputs, GpuFacts& facts);

struct IntelOutputs {
  ToolOutput list{};                 // xpu-smi discovery -j
  std::optional<ToolOutput> dump{};  // xpu-smi dump
};
void read_intel(const IntelOutputs& outputs, GpuFacts& facts);

}  // namespace remote::agent
