#include <gtest/gtest.h>

#include "cli/show/output.hpp"

namespace remote::cli {
namespace {

TEST(LineAssembler, MakesWholeLinesOutOfPieces) {
  LineAssembler lines("[0] ");
  EXPECT_EQ(lines.take("one\ntw"), "[0] one\n");
  EXPECT_EQ(lines.take("o"), "");
  EXPECT_EQ(lines.take("\n\nend"), "[0] two\n[0] \n");
  EXPECT_EQ(lines.finish(), "[0] end\n");
  EXPECT_EQ(lines.finish(), "");
}

TEST(LineAssembler, ReducesAProgressBarToItsLastState) {
  LineAssembler lines("");
  EXPECT_EQ(lines.take("\r10%\r50%"), "");
  EXPECT_EQ(lines.take("\r100%\n"), "100%\n");
  // A Windows line end is one line end, also when it is cut in two.
  EXPECT_EQ(lines.take("a\r"), "");
  EXPECT_EQ(lines.take("\nb\r\n"), "a\nb\n");
  // What stands at the end of the stream is the last state.
  EXPECT_EQ(lines.take("x\ry\r"), "");
  EXPECT_EQ(lines.finish(), "y\n");
}

TEST(LineAssembler, ShowsTheStateOfALongBarNowAndThen) {
  LineAssembler lines("> ", 100, std::chrono::milliseconds(0));
  EXPECT_EQ(lines.take("\r10%"), "> 10%\n");
  EXPECT_EQ(lines.take("\r50%\r60%"), "> 60%\n");
  EXPECT_EQ(lines.take("\r100%"), "> 100%\n");
  EXPECT_EQ(lines.take("\n"), "") << "that state stands there already";
  EXPECT_EQ(lines.take("a\r"), "") << "perhaps a Windows line end, and no bar";
  EXPECT_EQ(lines.take("\n\n"), "> a\n> \n");
  LineAssembler seldom("> ", 100, std::chrono::hours(1));
  EXPECT_EQ(seldom.take("\r10%\r50%"), "");
  EXPECT_EQ(seldom.take("\n"), "> 50%\n");
}

TEST(LineAssembler, BreaksEndlessLines) {
  LineAssembler lines("> ", 4);
  EXPECT_EQ(lines.take("abcdefghij"), "> abcd\n> efgh\n");
  EXPECT_EQ(lines.take("\n"), "> ij\n");
  EXPECT_EQ(lines.take(std::string("a\0b\n", 4)), std::string("> a\0b\n", 6));
}

}  // namespace
}  // namespace remote::cli
