#include "jobs/stacks.hpp"

#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "jobs/protocol.hpp"

namespace remote::jobs {
namespace {

using servers::read_answer;

using Method = ProcessDump::Method;

RankStack rank_at(int rank, const std::string& frame) {
  RankStack one;
  one.rank = rank;
  one.threads = {{"main", {frame, "main (train.py:9)"}}};
  return one;
}

TEST(Stacks, GroupsEqualOnesAndPutsTheOddOneFirst) {
  auto ranks = std::vector{rank_at(0, "wait (/home/a/train.py:3)"), rank_at(1, "wait (/root/train.py:3)"),
                           rank_at(2, "load (train.py:3)"), rank_at(3, "wait (train.py:3)")};
  ranks.push_back({});  // gave no stack
  const auto groups = group_stacks(ranks, false);
  ASSERT_EQ(groups.size(), 2U);
  ASSERT_EQ(groups[0].members.size(), 1U);
  EXPECT_EQ(groups[0].members[0].rank, 2);
  ASSERT_EQ(groups[1].members.size(), 3U);
  EXPECT_EQ(groups[1].members[0].rank, 0);
  EXPECT_EQ(groups[1].members[2].rank, 3);
  ranks[1].threads.push_back({"other", {"poll (x.py:1)"}});
  EXPECT_EQ(group_stacks(ranks, false).size(), 2U);
  EXPECT_EQ(group_stacks(ranks, true).size(), 3U);
}

TEST(Stacks, ReadsPySpy) {
  ProcessDump dump;
  dump.pid = 41;
  dump.method = Method::py_spy;
  dump.lines = {"Process 41: python train.py",
                "Python v3.11.2 (/usr/bin/python3.11)",
                "",
                "Thread 52 (idle): \"Thread-1\"",
                "    wait (threading.py:324)",
                "Thread 41 (active): \"MainThread\"",
                "    forward (model.py:12)",
                "    <module> (train.py:30)",
                ""};
  const auto threads = parse_threads(dump);
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_EQ(threads[0].frames, (std::vector<std::string>{"forward (model.py:12)", "<module> (train.py:30)"}));
  EXPECT_EQ(threads[1].frames, std::vector<std::string>{"wait (threading.py:324)"});
}

TEST(Stacks, RefusesForeignAnswers) {
  const std::string id(32, 'a');
  for (const std::string& line : std::vector<std::string>{
           "process " + id + " x - kernel", "process abc 4 - kernel", "process " + id + " 4 - gdb",
           std::string("line 4 |x"), "process " + id + " 4 - kernel\n@remote1 line 5 |x",
           "ended " + id + " x", std::string("clean")}) {
    EXPECT_THROW(read_answer<StacksAnswer>("@remote1 " + line + "\n@remote1 end\n"), Error) << line;
    EXPECT_THROW(read_answer<CleanAnswer>("@remote1 " + line + "\n@remote1 end\n"), Error) << line;
  }
  for (const char* line : {" failed", " removed because", " gone", ""}) {
    EXPECT_THROW(read_answer<CleanAnswer>("@remote1 clean " + id + line + "\n@remote1 end\n"), Error) << line;
  }
  EXPECT_THROW(read_answer<CleanAnswer>("@remote1 clean " + id + " removed\n"), Error);  // cut short
}

}  // namespace
}  // namespace remote::jobs
