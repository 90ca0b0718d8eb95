#include "servers/answer.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/login_shell.hpp"
#include "servers/action.hpp"
#include "support/words_answer.hpp"

namespace remote::servers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

// Cuts a text that comes in pieces of this size into lines.
std::vector<std::string> lines_of(LineCutter cutter, std::string_view text, std::size_t piece) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    cutter.add(text.substr(0, piece), [&](std::string_view line) { lines.emplace_back(line); });
    text.remove_prefix(std::min(piece, text.size()));
  }
  return lines;
}

TEST(LineCutter, CutsAtNewlinesAndReturns) {
  for (const std::size_t piece : {1U, 2U, 3U, 100U}) {
    EXPECT_THAT(lines_of(LineCutter(), "a\n 10%\r 20%\r\nbc\nrest", piece),
                ElementsAre("a", " 10%", " 20%", "", "bc"));
    EXPECT_THAT(lines_of(LineCutter("@r "), "@r a\rb\n@x\ry\n", piece), ElementsAre("@r a\rb", "@x", "y"));
  }
  const std::string longer(LineCutter::longest + 5, 'x');
  EXPECT_EQ(lines_of(LineCutter(), longer + "\n", 1000).at(0).size(), LineCutter::longest);
}

TEST(AnswerLine, IsTakenWordByWord) {
  AnswerLine line("@remote1 job 12 a-b_c 300 the rest  of it");
  EXPECT_EQ(line.kind(), "job");
  EXPECT_EQ(line.number(1, 12), 12);
  EXPECT_EQ(line.name(), "a-b_c");
  EXPECT_EQ(line.number<std::uint64_t>(0), 300U);
  EXPECT_EQ(line.rest(), "the rest  of it");
  EXPECT_FALSE(line.more());
  line.end();
}

TEST(AnswerLine, RefusesWhatItDoesNotUnderstand) {
  const auto refusal = [](const std::string& text, const std::function<void(AnswerLine&)>& act) {
    return message_of([&] {
      const std::string whole = "@remote1 " + text;  // the line is a view of it
      AnswerLine line(whole);
      act(line);
    });
  };
  EXPECT_THAT(refusal("a  b", [](AnswerLine& line) { line.word(); }),
              HasSubstr("a word is missing in '@remote1 a  b'"));
  EXPECT_THAT(refusal("a b ", [](AnswerLine& line) { line.word(); }), HasSubstr("a blank at the end"));
  EXPECT_THAT(refusal("", [](AnswerLine&) {}), HasSubstr("a word is missing"));
  EXPECT_THAT(refusal("a b", [](AnswerLine& line) { line.end(); }), HasSubstr("too many words"));
  for (const std::string wrong : {"0", "65", "-1", "+1", "1x", "0x1", "99999999999999999999"}) {
    EXPECT_THAT(refusal("a " + wrong, [](AnswerLine& line) { line.number(1, 64); }), HasSubstr("number"));
  }
  EXPECT_THAT(refusal("a 0", [](AnswerLine& line) { line.pid(); }), HasSubstr("number"));
  EXPECT_THAT(refusal("a b/c", [](AnswerLine& line) { line.name(); }), HasSubstr("a name is wrong"));
  EXPECT_THAT(refusal("a \x1b[2J", [](AnswerLine& line) { line.name(); }), HasSubstr("\\x1b[2J"));
  EXPECT_THAT(refusal("a three",
                      [](AnswerLine& line) {
                        line.choice<int>(line.word(), {{"one", 1}, {"two", 2}}, "no such number");
                      }),
              HasSubstr("no such number"));
}

TEST(ReadAnswer, TakesMarkedLinesUpToTheClosingOne) {
  EXPECT_THAT(
      read_answer<Words>("hello\n@remote1 word a\n@remote1x\n@remote1 word b\n@remote1 end\nbye\n").words,
      ElementsAre("a", "b"));
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "its login shell ended"},
           {"hello\n", "its login shell ended"},
           {"@remote1 word a\n", "cut short"},
           {"@remote1 word a\n@remote1 end", "the line is cut"},
           {"@remote1 word a\n@remote1 end\n@remote1 word b\n", "something follows the end"},
           {"@remote1 end\n@remote1 end\n", "something follows the end"},
           {"@remote1 end now\n", "too many words"},
           {"@remote1 odd a\n@remote1 end\n", "an unknown word"},
           {"@remote1 word a\rb c\n@remote1 end\n", "too many words"},
           {"@remote1 error no right\n@remote1 end\n", "refused: no right"},
           {"@remote1 word " + std::string(LineCutter::longest, 'x') + "\n@remote1 end\n", "too much"}}) {
    EXPECT_THAT(message_of([&] { read_answer<Words>(text); }), HasSubstr(why)) << text.substr(0, 100);
  }
}

TEST(ReadAnswer, WithoutAClosingLineOthersMayPrintToo) {
  const auto printed = read_answer<Printed>("10%\r20%\n@remote1 word a\nbye\n");
  EXPECT_THAT(printed.words, ElementsAre("a"));
  EXPECT_THAT(printed.others, ElementsAre("10%", "20%", "bye"));
  EXPECT_THROW(read_answer<Printed>("@remote1 odd a\n"), Error);
}

TEST(ReadAnswer, IsBoundedInLines) {
  struct Count {
    int lines = 0;
    void take(AnswerLine&) { ++lines; }
  };
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) {
    text += "@remote1 x\n";
  }
  EXPECT_THAT(message_of([&] { read_answer<Count>(text + "@remote1 end\n"); }), HasSubstr("too much in"));
}

TEST(Greeting, IsStrippedInPiecesOfAnySize) {
  const auto is_last = [](std::string_view line) { return line == "@begin"; };
  for (std::size_t piece = 1; piece < 30; ++piece) {
    Greeting greeting;
    std::string rest;
    std::string_view text = "hello\n@beg\n@begins\n@begin\nfirst\n@begin\n";
    while (!text.empty()) {
      rest += greeting.strip(text.substr(0, piece), is_last);
      text.remove_prefix(std::min(piece, text.size()));
    }
    EXPECT_TRUE(greeting.over());
    EXPECT_EQ(greeting.text(), "hello\n@beg\n@begins\n");
    EXPECT_EQ(rest, "first\n@begin\n");
  }
  Greeting endless;
  const std::string much(600'000, 'x');
  EXPECT_EQ(endless.strip(much, is_last), "");
  EXPECT_THROW(endless.strip(much, is_last), Error);
}

}  // namespace
}  // namespace remote::servers
