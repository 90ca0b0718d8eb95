#include "agent/gpus/ask.hpp"

namespace remote::agent {

std::optional<AmdOutputs> ask_amd(const Host& host, const AskOptions& options) {
  AmdOutputs outputs;
  if (!host.find_program("amd-smi").empty()) {
    Background<ToolOutput> metric = start_asking(host, options.limit, {"amd-smi", "metric", "--json"});
    outputs.fixed = ask_tool(host, options.limit, {"amd-smi", "static", "--json"});
    outputs.metric = metric.get();
    return outputs;
  }
  if (!host.find_program("rocm-smi").empty()) {
    outputs.rocm = ask_tool(
        host, options.limit,
        {"rocm-smi", "--showuniqueid", "--showbus", "--showproductname", "--showmeminfo", "vram", "--showuse",
         "--showtemp", "--showpower", "--showmaxpower", "--showdriverversion", "--json"});
    return outputs;
  }
  return std::nullopt;
}

}  // namespace remote::agent
