#include "jobs/stacks.hpp"

#include <gtest/gtest.h>

namespace remote::jobs {
namespace {

RankStack rank_at(int rank, const std::string& frame) {
  RankStack one;
  one.rank = rank;
  one.threads = {{"main", {frame, "main (train.py:9)"}}};
  return one;
}

TEST(Stacks, GroupsEqualOnesAndPutsTheOddOneFirst) {
  auto ranks = std::vector{rank_at(0, "wait (/home/a/train.py:3)"), rank_at(1, "wait (/root/train.py:3)"),
                           rank_at(2, "load (train.py:3)"), rank_at(3, "wait (train.py:3)")};
  ranks.push_back({});  // has no stack
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

}  // namespace
}  // namespace remote::jobs
