#include "project/line_fold.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/ranges.hpp"

namespace remote::project {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr OutputStream out = OutputStream::out;

class LineFoldTest : public ::testing::Test {
 protected:
  // Ranks 0 to 3 write.
  LineFoldTest() {
    for (int rank = 0; rank < 4; ++rank) {
      fold.open(rank);
    }
  }
  void write(int rank, const std::string& line, OutputStream stream = out) {
    fold.take(rank, stream, line + "\n", now);
  }
  void pass(std::chrono::milliseconds time) {
    now += time;
    fold.give_due(now);
  }
  // The lines passed on since the last call, as "0-3: line".
  std::vector<std::string> given() { return std::exchange(given_, {}); }

  LineFold::Clock::time_point now{};
  LineFold fold{[this](std::span<const int> ranks, OutputStream stream, std::string_view line) {
    EXPECT_TRUE(line.ends_with('\n'));
    line.remove_suffix(1);
    given_.push_back(fmt::format("{}{} {}", remote::ranges({ranks.begin(), ranks.end()}),
                                 stream == out ? ":" : "!", line));
  }};

 private:
  std::vector<std::string> given_;
};

TEST_F(LineFoldTest, ALineOfAllIsGivenOnceWithTheLastOfThem) {
  for (const int rank : {2, 0, 3}) {
    write(rank, "epoch 1");
  }
  EXPECT_THAT(given(), IsEmpty());
  write(1, "epoch 1");
  EXPECT_THAT(given(), ElementsAre("0-3: epoch 1"));
}

TEST_F(LineFoldTest, AnEarlierRankWaitsAndTheOrderOfEachStays) {
  for (const char* line : {"a", "b", "c"}) {
    write(0, line);
  }
  for (const int rank : {1, 2, 3}) {
    write(rank, "a");
    write(rank, "b");
  }
  EXPECT_THAT(given(), ElementsAre("0-3: a", "0-3: b"));
  pass(LineFold::longest_wait);
  EXPECT_THAT(given(), ElementsAre("0: c"));
}

TEST_F(LineFoldTest, ARankThatSaysSomethingElseStandsOut) {
  for (int rank = 0; rank < 4; ++rank) {
    if (rank == 2) {
      write(rank, "nan!");
    }
    write(rank, "step 1");
  }
  pass(LineFold::longest_wait);
  EXPECT_THAT(given(), ElementsAre("2: nan!", "0-3: step 1"));
}

TEST_F(LineFoldTest, ARankThatIsSilentHoldsTheOthersForAMomentOnly) {
  for (const int rank : {0, 1, 2}) {
    write(rank, "step 1");
  }
  pass(LineFold::longest_wait - std::chrono::milliseconds(1));
  EXPECT_THAT(given(), IsEmpty());
  pass(std::chrono::milliseconds(1));
  EXPECT_THAT(given(), ElementsAre("0-2: step 1"));
  write(3, "step 1");  // too late
  pass(LineFold::longest_wait);
  EXPECT_THAT(given(), ElementsAre("3: step 1"));
}

TEST_F(LineFoldTest, WhatOnlyOneRankWritesDoesNotWaitAgain) {
  write(0, "step 1 loss 0.5");
  EXPECT_THAT(given(), IsEmpty());
  pass(LineFold::longest_wait);
  EXPECT_THAT(given(), ElementsAre("0: step 1 loss 0.5"));
  write(0, "step 2 loss 0.25");
  EXPECT_THAT(given(), ElementsAre("0: step 2 loss 0.25"));
  write(0, "epoch 1");  // unknown whether other ranks write such lines
  write(0, "step 3 loss 0.125");
  EXPECT_THAT(given(), IsEmpty());
  for (const int rank : {1, 2, 3}) {
    write(rank, "epoch 1");
  }
  EXPECT_THAT(given(), ElementsAre("0-3: epoch 1", "0: step 3 loss 0.125"));
  // Other ranks write such lines with different values
  write(1, "step 3 loss 0.0625");
  EXPECT_THAT(given(), ElementsAre("1: step 3 loss 0.0625"));
}

TEST_F(LineFoldTest, WhatAnotherRankWritesTooWaitsFromThenOn) {
  write(0, "epoch 1");
  pass(LineFold::longest_wait);
  write(0, "epoch 2");
  write(1, "epoch 2");  // too late, for the last time
  EXPECT_THAT(given(), ElementsAre("0: epoch 1", "0: epoch 2", "1: epoch 2"));
  for (int rank = 0; rank < 4; ++rank) {
    write(rank, "epoch 3");
  }
  EXPECT_THAT(given(), ElementsAre("0-3: epoch 3"));
  write(0, "epoch 4");
  EXPECT_THAT(given(), IsEmpty());
}

TEST_F(LineFoldTest, ARankThatHasEndedIsNotWaitedFor) {
  fold.close(3);
  for (const int rank : {0, 1}) {
    write(rank, "step 1");
  }
  fold.close(2);
  EXPECT_THAT(given(), ElementsAre("0-1: step 1"));
  write(0, "step 2");
  fold.close(0);  // other ranks may still write its last line
  EXPECT_THAT(given(), IsEmpty());
  write(1, "step 2");
  EXPECT_THAT(given(), ElementsAre("0-1: step 2"));
}

TEST_F(LineFoldTest, ARankWithTwoOutputsIsWaitedForUntilBothHaveEnded) {
  fold.open(3);
  fold.close(3);
  for (const int rank : {0, 1, 2}) {
    write(rank, "a");
  }
  EXPECT_THAT(given(), IsEmpty());
  fold.close(3);
  EXPECT_THAT(given(), ElementsAre("0-2: a"));
}

TEST_F(LineFoldTest, LinesInAnotherOrderAreGivenInTheOrderOfEachRank) {
  write(0, "x");
  write(0, "y");
  write(1, "y");
  write(1, "x");
  fold.give_all();
  EXPECT_THAT(given(), ElementsAre("1: y", "0-1: x", "0: y"));
}

TEST_F(LineFoldTest, ErrorsAreNotFoldedWithOutput) {
  for (int rank = 0; rank < 4; ++rank) {
    write(rank, "a", rank == 1 ? OutputStream::err : out);
  }
  fold.give_all();
  EXPECT_THAT(given(), ElementsAre("0, 2-3: a", "1! a"));
}

TEST_F(LineFoldTest, ALineThatARankRepeatsIsGivenAsOftenAsItWroteIt) {
  for (int rank = 0; rank < 4; ++rank) {
    write(rank, "a");
    write(rank, "a");
  }
  EXPECT_THAT(given(), ElementsAre("0-3: a", "0-3: a"));
}

TEST_F(LineFoldTest, NothingIsLostWhateverComesWhen) {
  // Numbered lines by rank: the lines of each rank arrive in order, without gaps or repeats.
  std::vector<std::vector<std::string>> expected(4);
  std::vector<std::vector<std::string>> seen(4);
  LineFold any([&](std::span<const int> ranks, OutputStream, std::string_view line) {
    for (const int rank : ranks) {
      seen.at(static_cast<std::size_t>(rank)).emplace_back(line);
    }
  });
  for (int rank = 0; rank < 4; ++rank) {
    any.open(rank);
  }
  unsigned random = 7;
  for (int i = 0; i < 20000; ++i) {
    random = random * 1664525U + 1013904223U;
    const auto rank = (random >> 8U) % 4;
    expected[rank].push_back(fmt::format("{}\n", (random >> 16U) % 3));
    any.take(static_cast<int>(rank), out, expected[rank].back(), now);
    now += std::chrono::milliseconds((random >> 20U) % 30);
    any.give_due(now);
  }
  any.give_all();
  EXPECT_EQ(seen, expected);
}

TEST_F(LineFoldTest, WhatOneRankIsAheadIsBounded) {
  const std::string line(65536, 'x');
  for (int i = 0; i < 1000; ++i) {
    write(0, line);
  }
  EXPECT_GT(given().size(), 700U);
}

}  // namespace
}  // namespace remote::project
