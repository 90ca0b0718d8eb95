#include "agent/stacks/waiting.hpp"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace remote::agent {
namespace {

const std::string job_id(32, 'a');
const std::string collective =
    "all_reduce (/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py:1541)";
const std::string program = "<module> (/home/a/train.py:8)";
const std::string computes = "step (/home/a/train.py:9)";

using Threads = std::vector<ThreadStack>;

Threads main_thread(std::vector<std::string> frames) {
  return {{"main thread", std::move(frames)}};
}

struct ProbedRank {
  int pid = 5;
  std::optional<int> number = 0;
  std::array<std::optional<std::uint64_t>, 2> written{7, 7};
  Threads first = main_thread({collective, program});
  Threads second = main_thread({collective, program});
};

ProbedRank with_threads(ProbedRank rank, const Threads& first, const Threads& second) {
  rank.first = first;
  rank.second = second;
  return rank;
}

std::vector<wire::WhyReply> make_answer(const std::vector<ProbedRank>& ranks) {
  std::vector<wire::WhyReply> answer(1);
  for (const int number : {0, 1}) {
    wire::WhyReply sample;
    sample.number = number;
    sample.sample.emplace();
    for (const ProbedRank& rank : ranks) {
      sample.sample->ranks.push_back({.id = job_id, .pid = rank.pid, .rank = rank.number});
      sample.sample->processes.push_back(
          {.pid = rank.pid, .written = rank.written.at(static_cast<std::size_t>(number))});
      wire::WhyReply stack;
      stack.number = number;
      stack.stacks.push_back(
          {.id = job_id, .pid = rank.pid, .threads = number == 0 ? rank.first : rank.second});
      answer.push_back(std::move(stack));
    }
    answer.push_back(std::move(sample));
  }
  return answer;
}

bool waits(const std::vector<ProbedRank>& ranks) {
  return shows_waiting(make_answer(ranks), {job_id});
}

TEST(ShowsWaiting, IfAllRanksWaitForOthers) {
  EXPECT_TRUE(waits({{.pid = 5, .number = 0}, {.pid = 6, .number = 1}}));
}

TEST(ShowsWaiting, AnAgentIsNotARank) {
  const Threads own = main_thread({"run (/x/agent.py:1)"});
  const ProbedRank agent = with_threads({.pid = 4, .number = std::nullopt}, own, own);
  EXPECT_TRUE(waits({agent, {}}));
  EXPECT_FALSE(waits({agent}));
  EXPECT_TRUE(waits({{.pid = 4, .number = std::nullopt}})) << "without ranks the agent counts";
}

TEST(ShowsWaiting, NotOtherwise) {
  const ProbedRank rank;
  const ProbedRank other{.pid = 6, .number = 1};
  const Threads computing = main_thread({computes});
  EXPECT_FALSE(waits({rank, with_threads(other, computing, computing)})) << "one computes";
  EXPECT_FALSE(waits({rank, with_threads(other, other.first, main_thread({collective, computes}))}))
      << "one continued";
  EXPECT_FALSE(waits({rank, with_threads(other, other.first, {})})) << "one has no second stack";
  EXPECT_FALSE(waits({rank, with_threads(other, {}, {})})) << "one has no stack";
  EXPECT_FALSE(waits({rank, {.pid = 6, .number = 1, .written = {7, 8}}})) << "one wrote";
  EXPECT_FALSE(waits({rank, {.pid = 6, .number = 1, .written = {}}})) << "unknown";
  const Threads own = main_thread({"all_reduce (/a/ours.py:9)"});
  EXPECT_FALSE(waits({with_threads(rank, own, own)})) << "a function of the program with such a name";
  EXPECT_FALSE(waits({}));
  EXPECT_FALSE(shows_waiting({}, {job_id}));
  EXPECT_FALSE(shows_waiting(make_answer({rank}), {job_id, std::string(32, 'b')})) << "a job without ranks";
}

TEST(ShowsWaiting, ByTheMainThread) {
  const Threads swapped{{"main thread", {computes}}, {"Thread 0x01", {collective}}};
  EXPECT_FALSE(waits({with_threads({}, swapped, swapped)}));
  const Threads spy{{"Thread 5 (idle): \"MainThread\"", {collective}},
                    {"Thread 6 (idle): \"x\"", {computes}}};
  const Threads active{{"Thread 5 (active): \"MainThread\"", {collective}},
                       {"Thread 6 (active+gil): \"x\"", {computes}}};
  EXPECT_TRUE(waits({with_threads({}, spy, active)}));
  Threads other = active;
  other[1].name = "Thread 7 (idle): \"x\"";
  EXPECT_FALSE(waits({with_threads({}, spy, other)})) << "another thread";
}

}  // namespace
}  // namespace remote::agent
