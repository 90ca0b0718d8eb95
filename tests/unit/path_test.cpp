#include "ssh/path.hpp"

#include <array>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.hpp"

namespace remote::ssh {
namespace {

TEST(Path, ASilenceWithoutLossesHasNoExplanation) {
  EXPECT_EQ(explain_silence({}, {}), "");
  EXPECT_EQ(
      explain_silence({.out_of_order = 3}, {.unacknowledged = 4, .retransmissions = 1, .out_of_order = 3}),
      "");
  EXPECT_EQ(explain_silence({}, {.unacknowledged = 0, .retransmissions = 5}), "") << "they came at last";
}

TEST(Path, PacketsBehindAMissingOneSayThatLargerOnesAreLost) {
  EXPECT_EQ(explain_silence({.out_of_order = 3}, {.out_of_order = 4}),
            "small packets come from the server and larger ones are lost on the way");
}

TEST(Path, PacketsThatAreSentAgainInVainSayThatTheyAreLost) {
  EXPECT_EQ(explain_silence({}, {.unacknowledged = 1, .retransmissions = 2}),
            "it does not acknowledge the last packets, so these or its answers are lost on the way");
}

TEST(Path, OfWhatIsNoConnectionIsUnknown) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const UniqueFd from(ends[0]);
  const UniqueFd to(ends[1]);
  for (const int socket : {from.get(), -1}) {
    const PathFacts facts = read_path(socket);
    EXPECT_EQ(facts.unacknowledged + facts.retransmissions + facts.out_of_order, 0U);
  }
}

}  // namespace
}  // namespace remote::ssh
