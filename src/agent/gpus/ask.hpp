#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "agent/gpus/vendors.hpp"
#include "agent/host/background.hpp"
#include "agent/host/host.hpp"
#include "wire/facts.hpp"

// Runs the vendors' programs. The calls for one vendor run in parallel, because each can keep a driver busy
// for a second.

namespace remote::agent {

struct AskOptions {
  wire::GpuDetail detail = wire::GpuDetail::brief;
  std::chrono::milliseconds limit{};  // for each call
};

// A hanging driver must not delay the other facts. With `full`, a user is waiting for the answer.
constexpr std::chrono::milliseconds choose_limit(wire::GpuDetail detail) {
  return std::chrono::seconds(detail == wire::GpuDetail::full ? 7 : 10);
}

// nullopt if the vendor's program is not on PATH.
std::optional<NvidiaOutputs> ask_nvidia(const Host& host, const AskOptions& options);
// Prefers amd-smi, because rocm-smi is older.
std::optional<AmdOutputs> ask_amd(const Host& host, const AskOptions& options);
std::optional<IntelOutputs> ask_intel(const Host& host, const AskOptions& options);

// Runs one command and returns its stdout and stderr.
ToolOutput ask_tool(const Host& host, std::chrono::milliseconds limit, const std::vector<std::string>& argv);
// Calls ask_tool() in the background. `host` must outlive the result.
Background<ToolOutput> start_asking(const Host& host, std::chrono::milliseconds limit,
                                    std::vector<std::string> argv);

}  // namespace remote::agent
