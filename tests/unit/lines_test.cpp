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
  // A Windows line ending is a single line ending, even when it is split.
  EXPECT_EQ(lines.take("a\r"), "");
  EXPECT_EQ(lines.take("\nb\r\n"), "a\nb\n");
  // At the end of the stream, the last state is shown.
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

TEST(EscapeFilter, OnlyColorAndMovementWithinTheLinePass) {
  const auto filtered = [](std::string_view text) {
    EscapeFilter filter;
    return filter.take(text) + filter.finish();
  };
  for (const char* passes :
       {"a\tb\r50%\b\n", "\033[1;31mred\033[0m", "\033[K\033[2K\033[3G\033[C\033[5D", "é 日本"}) {
    EXPECT_EQ(filtered(passes), passes);
  }
  EXPECT_EQ(filtered("\033]52;c;aGk=\a"), "^[]52;c;aGk=^G");
  EXPECT_EQ(filtered("\033]0;title\033\\"), "^[]0;title^[\\");
  EXPECT_EQ(filtered("\033[2J\033[H\033c\033[?1049h\033[A\033[>4;1m"), "^[[2J^[[H^[c^[[?1049h^[[A^[[>4;1m");
  EXPECT_EQ(filtered("\xc2\x9b"
                     "2J\x0e\x7f"),
            "\\x9b2J^N^?");
  // An escape sequence may arrive in pieces.
  EscapeFilter filter;
  EXPECT_EQ(filter.take("a\033"), "a");
  EXPECT_EQ(filter.take("[3"), "");
  EXPECT_EQ(filter.take("1mb\033["), "\033[31mb");
  EXPECT_EQ(filter.finish(), "^[[");
}

}  // namespace
}  // namespace remote::cli
