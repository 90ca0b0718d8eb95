#include "agent/stacks/waiting.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "base/strings.hpp"

namespace remote::agent {
namespace {

// The files in the stack frames of a thread that waits for other ranks.
constexpr std::array<std::string_view, 2> waiting_files{"torch/distributed/distributed_c10d.py",
                                                        "torch/distributed/rendezvous.py"};
// py-spy's thread states, which change while a thread waits.
constexpr std::array<std::string_view, 3> thread_states{" (active)", " (idle)", " (active+gil)"};

bool is_waiting_frame(const std::string& frame) {
  return std::ranges::any_of(waiting_files,
                             [&](std::string_view file) { return frame.find(file) != std::string::npos; });
}

bool is_same_thread(const ThreadStack& one, const ThreadStack& other) {
  const auto remove_states = [](std::string name) {
    for (const std::string_view state : thread_states) {
      name = replace_all(name, state, "");
    }
    return name;
  };
  return one.frames == other.frames && remove_states(one.name) == remove_states(other.name);
}

class WaitingCheck {
 public:
  explicit WaitingCheck(const std::vector<wire::WhyReply>& answer) {
    for (const wire::WhyReply& part : answer) {
      Sample& sample = samples_.at(static_cast<std::size_t>(part.number));
      for (const wire::ProcessStack& stack : part.stacks) {
        sample.threads[stack.pid] = &stack.threads;
      }
      if (!part.sample) {
        continue;
      }
      for (const wire::ProcessSample& process : part.sample->processes) {
        sample.written[process.pid] = process.written;
      }
      if (part.number == 1) {
        ranks_ = part.sample->ranks;
      }
    }
  }

  bool is_job_waiting(const std::string& id) {
    const auto is_of_job = [&](const wire::RankSample& rank) { return rank.id == id; };
    // If a job has ranks, its process without a rank is the one that starts them.
    const bool has_ranks = std::ranges::any_of(
        ranks_, [&](const wire::RankSample& rank) { return is_of_job(rank) && rank.rank; });
    return std::ranges::any_of(ranks_, is_of_job) &&
           std::ranges::all_of(ranks_, [&](const wire::RankSample& rank) {
             return !is_of_job(rank) || (has_ranks && !rank.rank) || is_process_waiting(rank.pid);
           });
  }

 private:
  struct Sample {
    std::map<int, const std::vector<ThreadStack>*> threads{};  // by pid
    std::map<int, std::optional<std::uint64_t>> written{};
  };

  bool is_process_waiting(int pid) {
    const auto* first = samples_[0].threads[pid];
    const auto* second = samples_[1].threads[pid];
    const auto& before = samples_[0].written[pid];
    return first != nullptr && second != nullptr && !second->empty() &&
           std::ranges::equal(*first, *second, is_same_thread) &&
           std::ranges::any_of(second->front().frames, is_waiting_frame) && before &&
           before == samples_[1].written[pid];
  }

  std::array<Sample, 2> samples_{};
  std::vector<wire::RankSample> ranks_{};
};

}  // namespace

bool shows_waiting(const std::vector<wire::WhyReply>& answer, const std::vector<std::string>& ids) {
  WaitingCheck check(answer);
  return std::ranges::all_of(ids, [&](const std::string& id) { return check.is_job_waiting(id); });
}

}  // namespace remote::agent
