#include "ui/table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.hpp"

namespace remote::ui {
namespace {

TEST(DisplayWidth, CountsCellsNotBytes) {
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("äöü"), 3U);
  EXPECT_EQ(display_width("e\u0301"), 1U) << "a combining accent";
  EXPECT_EQ(display_width("日本"), 4U);
  EXPECT_EQ(display_width("한국"), 4U);
  EXPECT_EQ(display_width("Ａ"), 2U) << "full width";
  EXPECT_EQ(display_width("🚀"), 2U);
  EXPECT_EQ(display_width("a\u200Bb"), 2U) << "zero-width space";
  EXPECT_EQ(display_width("…"), 1U);
  EXPECT_EQ(display_width("━█"), 2U);
  EXPECT_EQ(display_width("\xFF\xFE"), 2U) << "bytes that are not UTF-8 are shown as one mark each";
}

TEST(Shorten, CutsBetweenCharacters) {
  EXPECT_EQ(shorten("abcdef", 6), "abcdef");
  EXPECT_EQ(shorten("abcdef", 5), "abcd…");
  EXPECT_EQ(shorten("abcdef", 1), "…");
  EXPECT_EQ(shorten("abcdef", 0), "");
  EXPECT_EQ(shorten("日本語", 6), "日本語");
  EXPECT_EQ(shorten("日本語", 5), "日本…");
  EXPECT_EQ(shorten("日本語", 4), "日…");
  EXPECT_EQ(shorten("e\u0301e\u0301e\u0301", 2), "e\u0301…");
  EXPECT_EQ(shorten("e\u0301e\u0301", 2), "e\u0301e\u0301");
}

TEST(Utf8, RefusesWhatIsNotWellFormed) {
  for (const char* bad : {"\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\x80", "\xFE"}) {
    EXPECT_EQ(first_invalid_utf8(bad), 0U);
  }
  EXPECT_EQ(first_invalid_utf8("aä日🚀\xFF"), 10U);
  EXPECT_EQ(first_invalid_utf8("aä日🚀"), std::nullopt);
}

TEST(Table, AlignsColumnsWithoutTrailingBlanks) {
  Table table({"NAME", Column("N", true), "NOTE"});
  table.add({"日本", "7", "x"});
  table.add({"long-name", "123", ""});
  table.add({"short"});
  EXPECT_EQ(table.text(std::nullopt),
            "NAME         N  NOTE\n"
            "日本         7  x\n"
            "long-name  123\n"
            "short\n");
}

TEST(Table, CutsTheWidestColumnToTheTerminal) {
  Table table({"KEY", "COMMAND", "TAGS"});
  table.add({"1", "python train.py --lr 0.1 --epochs 100", "a,b"});
  table.add({"2", "ls", "distributed,torch"});
  EXPECT_EQ(table.text(std::size_t{40}),
            "KEY  COMMAND           TAGS\n"
            "1    python train.py…  a,b\n"
            "2    ls                distributed,torch\n");
  for (const std::size_t width : {30U, 50U, 60U}) {
    const std::string text = table.text(width);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      EXPECT_LE(display_width(text.substr(at, end - at)), width);
      at = end + 1;
    }
  }
  EXPECT_THAT(table.text(std::size_t{3}), testing::HasSubstr("…")) << "too narrow for anything: it wraps";
}

TEST(Table, AColumnThatStaysWholeIsCutAfterAllOthers) {
  Table table({Column("STATE").whole(), "SERVER", Column("COMMAND").yielding().elided()});
  table.add({"rank 2 failed exit 3", "node-1, node-2", "python train.py --epochs 10"});
  EXPECT_EQ(table.text(40),
            "STATE                 SERVER    COMMAND\n"
            "rank 2 failed exit 3  node-1,…  python …\n");
  EXPECT_THAT(table.text(30), testing::StartsWith("STATE"));
}

TEST(Table, AColumnThatGivesWayIsLeftOutBeforeARowWraps) {
  Table table({Column("STATE").whole(),
               "SERVER",
               {"STARTED", true},
               Column("TAGS").yielding(),
               Column("COMMAND").yielding()});
  table.add({"running, silent for 2m", "node-1", "2m ago", "a-tag-of-a-person", "python train.py"});
  EXPECT_EQ(table.text(60),
            "STATE                   SERVER  STARTED  COMMAND\n"
            "running, silent for 2m  node-1   2m ago  python train.py\n");
  EXPECT_EQ(table.text(42),
            "STATE                   SERVER  STARTED\n"
            "running, silent for 2m  node-1   2m ago\n");
}

TEST(Table, ABriefTextStandsWhereTheTextDoesNotFit) {
  Table table({"SERVER", Column("STATE").whole()});
  Cell servers("node-1, node-2");
  servers.brief = "2 servers";
  table.add({servers, "running"});
  EXPECT_EQ(table.text(23), "SERVER          STATE\nnode-1, node-2  running\n");
  EXPECT_EQ(table.text(18), "SERVER     STATE\n2 servers  running\n");
}

TEST(Table, BriefTextsAndADispensableColumnGoBeforeAnElidedOneIsHardToRead) {
  Table table({Column("STATE").whole(), "SERVER", Column("RANKS").dispensable(), Column("TAGS").yielding(),
               Column("COMMAND").yielding().elided()});
  Cell servers("node-1, node-2");
  servers.brief = "2 servers";
  Cell ranks("4 running, 2 ended");
  ranks.brief = "6";
  table.add(
      {"rank 2 failed exit 3", servers, ranks, "night", "python train.py --config resnet.yaml --epochs 10"});
  EXPECT_EQ(table.text(80),
            "STATE                 SERVER          RANKS  TAGS   COMMAND\n"
            "rank 2 failed exit 3  node-1, node-2  6      night  python train.py --…epochs 10\n");
  EXPECT_EQ(table.text(60),
            "STATE                 SERVER     RANKS  COMMAND\n"
            "rank 2 failed exit 3  2 servers  6      python train.…chs 10\n");
  EXPECT_EQ(table.text(50),
            "STATE                 SERVER     COMMAND\n"
            "rank 2 failed exit 3  2 servers  python trai…hs 10\n");
}

TEST(Table, AColumnThatIsNeverCutStaysWholeHoweverNarrowTheTerminalIs) {
  Table table({Column("KEY", true).uncut(),
               Column("STATE").whole(),
               "SERVER",
               {"STARTED", true},
               Column("COMMAND").yielding().elided()});
  Cell several("100-103, 110");
  several.brief = "100…";
  table.add(
      {"1000-1003", "rank 2 failed exit 3; others ended", "node-1, node-2", "2m ago", "python train.py"});
  table.add({several, "running", "node-1", "2m ago", "python train.py"});
  for (const std::size_t width : {80U, 60U, 40U, 20U}) {
    EXPECT_THAT(table.text(width), testing::HasSubstr("\n1000-1003  ")) << width;
    EXPECT_THAT(table.text(width), testing::HasSubstr("\n     100…  ")) << width;
  }
  EXPECT_THAT(table.text(200), testing::HasSubstr("\n100-103, 110  "));
}

TEST(Table, PipedOutputIsWhole) {
  Table table({"A"});
  const std::string long_text(500, 'x');
  table.add({long_text});
  table.add({"two\nlines"});
  EXPECT_EQ(table.text(std::nullopt), "A\n" + long_text + "\ntwo\\nlines\n");
}

TEST(Table, ColoursDoNotChangeTheAlignment) {
  Table table({"STATE", "X"});
  table.add({Cell("ok", Style::green), "1"});
  Terminal terminal;
  terminal.set_color(Color::always);
  EXPECT_THAT(table.text(terminal), testing::HasSubstr("\033[32mok\033[0m     1\n"));
  EXPECT_THAT(table.text(terminal), testing::StartsWith("\033[1mSTATE\033[0m  \033[1mX\033[0m\n"));
  terminal.set_color(Color::never);
  EXPECT_EQ(table.text(terminal), "STATE  X\nok     1\n");
}

}  // namespace
}  // namespace remote::ui
