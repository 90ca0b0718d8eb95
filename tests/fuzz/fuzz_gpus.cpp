#include <cstddef>
#include <cstdint>
#include <string_view>

#include <remote/error.hpp>

#include "promise.hpp"
#include "servers/action.hpp"
#include "servers/gpus.hpp"

// What a server says of its GPUs is any bytes, also behind the marks that our script puts before each line.

namespace {

using namespace remote;
using namespace remote::fuzz;

void check(std::string_view text) {
  const GpuFacts facts = servers::read_answer<servers::GpuAnswer>(text).facts();
  for (const Gpu& gpu : facts.gpus) {
    require(gpu.index >= 0, "an index counts");
    require(!gpu.utilisation || (*gpu.utilisation >= 0 && *gpu.utilisation <= 100), "percent are percent");
    require(gpu.vendor != GpuVendor::nvidia || gpu.uuid.find_first_of(" \n\x1b") == std::string::npos,
            "a UUID is one word");
    for (const GpuProcess& process : gpu.processes) {
      require(process.pid > 0, "pids are pids");
      require(process.job.empty() || process.job.size() == 32, "a job's id is one");
    }
  }
  if (facts.topology) {
    require(facts.topology->links.size() == facts.topology->devices.size(), "the matrix is square");
    for (const auto& row : facts.topology->links) {
      require(row.size() == facts.topology->devices.size(), "the matrix is square");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  guarded([&] { check(std::string_view(reinterpret_cast<const char*>(data), size)); });
  return 0;
}
