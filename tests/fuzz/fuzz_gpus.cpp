#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "agent/gpus/gpus.hpp"
#include "base/strings.hpp"
#include "promise.hpp"
#include "wire/cbor.hpp"

// The outputs of the vendors' programs may be any bytes. An input has one part per output: "== NAME CODE",
// then the lines of the output.

namespace {

using namespace remote;
using namespace remote::fuzz;

std::map<std::string, agent::ToolOutput> read_parts(std::string_view text) {
  std::map<std::string, agent::ToolOutput> parts;
  agent::ToolOutput* part = nullptr;
  for (const std::string& line : split(text, '\n')) {
    if (const auto words = split_words(line); line.starts_with("== ") && words.size() == 3) {
      part = &parts[words[1]];
      part->code = parse_number<int>(words[2]).value_or(1);
    } else if (part != nullptr) {
      part->lines.push_back(line);
    }
  }
  return parts;
}

agent::GpuOutputs make_outputs(const std::map<std::string, agent::ToolOutput>& parts) {
  const auto find = [&](const char* name) {
    const auto found = parts.find(name);
    return found == parts.end() ? std::nullopt : std::optional(found->second);
  };
  agent::GpuOutputs outputs;
  if (const auto query = find("query")) {
    const auto fields = find("fields").value_or(agent::ToolOutput{});
    outputs.nvidia = {.fields = fields.lines,
                      .query = *query,
                      .apps = find("apps"),
                      .xml = find("xml"),
                      .topology = find("topology"),
                      .kernel_log = find("log")};
  }
  if (const auto rocm = find("rocm")) {
    outputs.amd = {.rocm = rocm, .fixed = {}, .metric = {}};
  } else if (const auto fixed = find("fixed")) {
    outputs.amd = {.rocm = {}, .fixed = *fixed, .metric = find("metric")};
  }
  if (const auto list = find("list")) {
    outputs.intel = {.list = *list, .dump = find("dump")};
  }
  return outputs;
}

void check(const GpuFacts& facts) {
  for (const Gpu& gpu : facts.gpus) {
    require(gpu.index >= 0, "an index is not negative");
    require(!gpu.utilisation || (*gpu.utilisation >= 0 && *gpu.utilisation <= 100), "percent are percent");
    require(gpu.vendor != GpuVendor::nvidia || gpu.uuid.find_first_of(" \n\x1b") == std::string::npos,
            "a UUID is one word");
    for (const GpuProcess& process : gpu.processes) {
      require(process.pid > 0, "pids are positive");
    }
  }
  if (facts.topology) {
    require(facts.topology->links.size() == facts.topology->devices.size(), "the matrix is square");
    for (const auto& row : facts.topology->links) {
      require(row.size() == facts.topology->devices.size(), "the matrix is square");
    }
  }
  // An exception from decode() stops the fuzzer, because the client would reject the reply.
  const auto again = wire::decode<GpuFacts>(wire::encode(facts));
  require(again.gpus.size() == facts.gpus.size(), "facts survive encoding and decoding");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check(agent::parse_gpus(
      make_outputs(read_parts(std::string_view(reinterpret_cast<const char*>(data), size)))));
  return 0;
}
