#include "agent/gpus/ask.hpp"

namespace remote::agent {

std::optional<IntelOutputs> ask_intel(const Host& host, const AskOptions& options) {
  if (host.find_program("xpu-smi").empty()) {
    return std::nullopt;
  }
  IntelOutputs outputs;
  // 0: utilization, 1: power, 2: clock, 3: temperature of the core, 18: used memory
  Background<ToolOutput> dump =
      start_asking(host, options.limit, {"xpu-smi", "dump", "-d", "-1", "-m", "0,1,2,3,18", "-n", "1"});
  outputs.list = ask_tool(host, options.limit, {"xpu-smi", "discovery", "-j"});
  outputs.dump = dump.get();
  return outputs;
}

}  // namespace remote::agent
