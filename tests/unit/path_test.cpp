#include "ssh/path.hpp"

#include <array>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.hpp"
#include "support/lossy_socket.hpp"
#include "support/waiting.hpp"

namespace remote::ssh {
namespace {

TEST(Path, WhatIsUnknownExplainsNothing) {
  EXPECT_EQ(explain_silence({}, {}), "");
  EXPECT_EQ(explain_silence({}, {.known = true, .unacknowledged = 4, .retransmissions = 1}), "")
      << "that is usual";
}

TEST(Path, PacketsBehindAMissingOneSayThatLargerOnesAreLost) {
  EXPECT_EQ(explain_silence({.known = true, .out_of_order = 3}, {.known = true, .out_of_order = 4}),
            "small packets arrive from the server, and larger ones are lost");
}

TEST(Path, PacketsThatAreSentAgainInVainAreNotAcknowledged) {
  EXPECT_EQ(explain_silence({}, {.known = true, .unacknowledged = 1, .retransmissions = 2}),
            "the server does not acknowledge the last packets");
}

TEST(Path, AnAnswerCanBeMissingWhereAllIsAcknowledged) {
  EXPECT_EQ(explain_silence({.known = true, .out_of_order = 3},
                            {.known = true, .retransmissions = 5, .out_of_order = 3}),
            "the server acknowledges all packets, but its answer is missing");
}

TEST(Path, OfWhatIsNoConnectionIsUnknown) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const UniqueFd from(ends[0]);
  const UniqueFd to(ends[1]);
  for (const int socket : {from.get(), -1}) {
    const PathFacts facts = read_path(socket);
    EXPECT_FALSE(facts.known);
    EXPECT_EQ(facts.unacknowledged + facts.retransmissions + facts.out_of_order, 0U);
  }
}

TEST(Path, OfAConnectionWhosePacketsAreAcknowledgedTheAnswerIsMissing) {
  const auto ends = test::connect_over_loopback();
  const PathFacts before = read_path(ends.first.get());
  EXPECT_TRUE(before.known);
  ASSERT_TRUE(write_all(ends.first.get(), "question"));
  EXPECT_TRUE(test::eventually([&] {
    return explain_silence(before, read_path(ends.first.get())) ==
           "the server acknowledges all packets, but its answer is missing";
  }));
}

TEST(Path, OfAConnectionThatLosesLargePacketsSmallOnesArrive) {
  const auto ends = test::connect_over_loopback();
  const PathFacts before = read_path(ends.first.get());
  test::lose_packets_above(ends.first.get(), 500);
  ASSERT_TRUE(write_all(ends.second.get(), std::string(1000, 'x')));
  ASSERT_TRUE(write_all(ends.second.get(), "x"));
  EXPECT_TRUE(test::eventually([&] {
    return explain_silence(before, read_path(ends.first.get())) ==
           "small packets arrive from the server, and larger ones are lost";
  }));
}

TEST(Path, OfAConnectionThatNothingPassesPacketsAreNotAcknowledged) {
  const auto ends = test::connect_over_loopback();
  const PathFacts before = read_path(ends.first.get());
  test::lose_packets_above(ends.second.get(), 0);
  ASSERT_TRUE(write_all(ends.first.get(), "question"));
  EXPECT_TRUE(test::eventually([&] { return read_path(ends.first.get()).unacknowledged == 1; }));
  EXPECT_EQ(explain_silence(before, read_path(ends.first.get())), "") << "it was not sent again yet";
}

}  // namespace
}  // namespace remote::ssh
