#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "jobs/protocol.hpp"
#include "jobs/stacks.hpp"
#include "promise.hpp"

// The answers to stacks and clean: dumps of programs that nobody here wrote.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace remote;
  using namespace remote::fuzz;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  guarded([&] {
    std::vector<RankStack> ranks;
    for (const jobs::ProcessDump& dump : servers::read_answer<jobs::StacksAnswer>(text).dumps) {
      require(dump.pid > 0, "a pid names one process, never a group");
      RankStack rank;
      rank.pid = dump.pid;
      rank.rank = dump.rank;
      rank.threads = jobs::parse_threads(dump);
      ranks.push_back(std::move(rank));
    }
    std::size_t with_stack = 0;
    for (const RankStack& rank : ranks) {
      with_stack += rank.threads.empty() ? 0 : 1;
    }
    for (const bool all_threads : {false, true}) {
      std::size_t grouped = 0;
      std::size_t last = 0;
      for (const StackGroup& group : group_stacks(ranks, all_threads)) {
        require(group.members.size() >= last, "the smallest group comes first");
        last = group.members.size();
        grouped += last;
      }
      require(grouped == with_stack, "each stack is in one group");
    }
  });
  guarded([&] {
    for (const jobs::CleanReply& reply : servers::read_answer<jobs::CleanAnswer>(text).jobs) {
      require(reply.gone() == reply.reason.empty(), "what stays says why");
    }
  });
  return 0;
}
