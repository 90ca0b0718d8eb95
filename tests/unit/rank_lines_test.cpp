#include "project/rank_lines.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace remote::project {
namespace {

constexpr std::string_view written =
    "a word of the agent\n[0] one\n[1] two\n[10] ten\n[] none\n[1 ] none\n[-1] none\n\n[1] \n[1] [0] "
    "quoted\n[x] none\n";

// The lines passed on, each after its rank; pieces of a line are joined.
std::string in_pieces(std::string_view text, std::size_t size) {
  RankLines lines;
  std::string given;
  const auto give = [&](std::optional<int> rank, std::string_view piece) {
    if (given.empty() || given.ends_with('\n')) {
      given += rank ? fmt::format("{}:", *rank) : "-:";
    }
    given += piece;
  };
  for (std::size_t at = 0; at < text.size(); at += size) {
    lines.take(text.substr(at, size), give);
  }
  lines.finish(give);
  return given;
}

TEST(RankLines, AreOfTheRankThatTheirLabelSays) {
  for (const std::size_t size : {1U, 2U, 3U, 7U, 1000U}) {
    EXPECT_EQ(in_pieces(written, size),
              "-:a word of the agent\n0:one\n1:two\n10:ten\n-:[] none\n-:[1 ] none\n-:[-1] none\n-:\n1:\n"
              "1:[0] quoted\n-:[x] none\n")
        << size;
  }
}

TEST(RankLines, NothingIsLostAtTheEnd) {
  EXPECT_EQ(in_pieces("[1] a\n[1", 3), "1:a\n-:[1");
  EXPECT_EQ(in_pieces("[1] a", 3), "1:a");
  EXPECT_EQ(in_pieces("[123456789012] a", 3), "-:[123456789012] a");
  EXPECT_EQ(in_pieces("[2] a\nb", 3), "2:a\n-:b");
}

}  // namespace
}  // namespace remote::project
