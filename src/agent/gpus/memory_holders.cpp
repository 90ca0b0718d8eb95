#include "agent/gpus/memory_holders.hpp"

#include "agent/gpus/gpus.hpp"
#include "agent/host/run.hpp"
#include "base/strings.hpp"

namespace remote::agent {

std::set<int> find_memory_holders(const Host& host, std::chrono::milliseconds limit) {
  std::set<int> pids;
  try {
    const RunResult result =
        run(add_gpu_folders(host),
            {.argv = {"nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"}, .limit = limit});
    for (const std::string& word : split_words(result.out)) {
      if (const auto pid = parse_number<int>(word); pid && *pid > 0) {
        pids.insert(*pid);
      }
    }
  } catch (const CannotStart&) {
  }
  return pids;
}

}  // namespace remote::agent
