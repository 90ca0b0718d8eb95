#include "project/rank_lines.hpp"

#include <gtest/gtest.h>

namespace remote::project {
namespace {

constexpr std::string_view written =
    "a word of the agent\n[0] one\n[1] two\n[10] ten\n[] none\n[1 ] none\n\n[1] \n[1] [0] quoted\n[x] none\n";

std::string in_pieces(std::string_view text, std::size_t size, int rank) {
  RankLines lines(rank);
  std::string shown;
  for (std::size_t at = 0; at < text.size(); at += size) {
    shown += lines.take(text.substr(at, size));
  }
  return shown + lines.finish();
}

TEST(RankLines, AreThoseOfTheRankAndThoseOfTheAgent) {
  for (const std::size_t size : {1U, 2U, 3U, 7U, 1000U}) {
    EXPECT_EQ(in_pieces(written, size, 1),
              "a word of the agent\ntwo\n[] none\n[1 ] none\n\n\n[0] quoted\n[x] none\n");
    EXPECT_EQ(in_pieces(written, size, 10), "a word of the agent\nten\n[] none\n[1 ] none\n\n[x] none\n");
  }
}

TEST(RankLines, NothingIsLostAtTheEnd) {
  EXPECT_EQ(in_pieces("[1] a\n[1", 3, 1), "a\n[1");
  EXPECT_EQ(in_pieces("[1] a", 3, 1), "a");
  EXPECT_EQ(in_pieces("[123456789012] a", 3, 1), "[123456789012] a");
  EXPECT_EQ(in_pieces("[2] a", 3, 1), "");
}

}  // namespace
}  // namespace remote::project
