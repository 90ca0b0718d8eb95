#include <gtest/gtest.h>

#include "base/strings.hpp"
#include "ui/terminal.hpp"

namespace remote {
namespace {

TEST(Visible, OneLine) {
  EXPECT_EQ(visible_line("a\nb\tc\r\x1b[31m\x7f"), "a\\nb\\tc\\r\\x1b[31m\\x7f");
  EXPECT_EQ(visible_line("\xFFx"), "\\xffx");
  EXPECT_EQ(visible_line("gr\u00fc\u00dfe \u65e5\u672c"), "gr\u00fc\u00dfe \u65e5\u672c");
  EXPECT_EQ(visible_line("\u202Eevil"), "\\u202eevil");
  EXPECT_EQ(visible_line("\u009b31m"), "\\x9b31m") << "CSI in one character";
  EXPECT_EQ(visible_line(std::string_view("\0", 1)), "\\x00");
}

TEST(Visible, SeveralLinesKeepNewlinesAndTabs) {
  EXPECT_EQ(visible_text("a\n\tb\x1b]0;title\a\r\n"), "a\n\tb\\x1b]0;title\\x07\\r\n");
  EXPECT_EQ(visible_text("\u2066x\x9b"), "\\u2066x\\x9b");
}

TEST(Visible, IsCutAfterCharactersNotBytes) {
  EXPECT_EQ(visible_line("\u65e5\u672c\u8a9e", 2), "\u65e5\u672c…");
  EXPECT_EQ(visible_line("\u65e5\u672c\u8a9e", 3), "\u65e5\u672c\u8a9e");
  EXPECT_EQ(visible_text("\n\n\n", 2), "\n\n…");
}

TEST(Visible, ANoticeMayQuoteAnything) {
  ui::Terminal terminal;
  terminal.set_color(ui::Color::always);
  testing::internal::CaptureStderr();
  terminal.notice("a\x1b[2J", ui::Style::red);
  terminal.warning("b\x1b[2J");
  const std::string shown = testing::internal::GetCapturedStderr();
  EXPECT_NE(shown.find("\x1b[31ma\\x1b[2J\x1b["), std::string::npos) << shown;
  EXPECT_NE(shown.find("b\\x1b[2J\n"), std::string::npos) << shown;
}

}  // namespace
}  // namespace remote
