#include "servers/marked_lines.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/login_shell.hpp"
#include "base/strings.hpp"

namespace remote::servers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Splits a text into lines; it arrives in pieces of this size.
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

struct Word {
  std::string text;
  static constexpr auto fields() {
    return wire::field_list(wire::field("text", &Word::text, wire::a_line(70'000)));
  }
};

std::string print_word(const std::string& text) {
  return "mark {\"text\":\"" + text + "\"}\n";
}

// Reads a text that arrives in pieces of this size. Appends the error, if any.
std::vector<std::string> read_words(std::string_view text, std::size_t piece = 1000) {
  std::vector<std::string> words;
  MarkedLines lines("mark ", [&](std::string_view json) { words.push_back(parse_message<Word>(json).text); });
  while (!text.empty()) {
    lines.add(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
  }
  try {
    lines.check();
  } catch (const Error& error) {
    words.push_back(error.reason());
  }
  return words;
}

TEST(MarkedLines, AreReadBetweenOtherLines) {
  for (const std::size_t piece : {1U, 2U, 7U, 1000U}) {
    EXPECT_THAT(
        read_words("hello\n" + print_word("a b") + "10%\r20%\r" + print_word("c") + "markx {}\n mark x\nmark",
                   piece),
        ElementsAre("a b", "c"));
  }
  EXPECT_THAT(read_words("mark {\"text\":\"cut"), IsEmpty());
}

TEST(MarkedLines, MalformedOnesAreRefused) {
  for (const auto& [line, why] : std::vector<std::pair<std::string, std::string>>{
           {"mark ", "the message is not JSON"},
           {"mark {\"text\":\"a\"} b", "the message is not JSON"},
           {"mark {\"text\":\"a\rb\"}", "the message is not JSON"},
           {"mark {}", "'text' is missing"},
           {"mark {\"text\":1}", "'text' is not a string"},
           {"mark {\"text\":\"a\",\"more\":1}", "the message has an unknown field"},
           {"mark {\"text\":\"\\u001b\"}", "'text' has a character that is not allowed"},
           {"mark \x1b[2J", "is not JSON in 'mark \\x1b[2J'"},
           {"mark {\"text\":\"" + std::string(LineCutter::longest, 'x') + "\"}",
            "the message is too long"}}) {
    // Nothing after the error is read.
    EXPECT_THAT(read_words(print_word("first") + line + "\n" + print_word("next")),
                ElementsAre("first", HasSubstr(why)))
        << line.substr(0, 100);
  }
}

TEST(MarkedLines, AreCounted) {
  MarkedLines lines("mark ", [](std::string_view) {});
  lines.add("mark");
  EXPECT_FALSE(lines.is_cut());
  lines.add(" {");
  EXPECT_TRUE(lines.is_cut());
  EXPECT_EQ(lines.count(), 0U);
  lines.add("}\n");
  EXPECT_FALSE(lines.is_cut());
  EXPECT_EQ(lines.count(), 1U);
  std::string text;
  for (int i = 1; i < 1'000'000; ++i) {
    text += "mark x\n";
  }
  lines.add(text);
  lines.check();
  lines.add("mark x\n");
  EXPECT_THROW(lines.check(), Error);
}

// "hello from gateway" in place of the command's output
TEST(LoginShell, ACommandOfTheServersConfigurationMayAnswer) {
  for (const char* ended : {"", "exit 1"}) {
    const Error error = login_shell_ended(ended, "hello from gateway\n");
    EXPECT_THAT(error.reason(), ::testing::HasSubstr("it printed: hello from gateway")) << ended;
    EXPECT_THAT(error.hint(), ::testing::HasSubstr("in place of the shell (ForceCommand, or command= in "))
        << ended;
    EXPECT_THAT(login_shell_ended(ended).hint(), ::testing::Not(::testing::HasSubstr("ForceCommand")))
        << ended;
  }
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
