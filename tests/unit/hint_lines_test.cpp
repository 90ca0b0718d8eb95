// The lines that hints and messages suggest, as they are in the source: the program must accept them.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/command.hpp"
#include "base/files.hpp"
#include "cli/commands.hpp"
#include "cli/parser.hpp"
#include "cli/topics.hpp"
#include "support/paths.hpp"

namespace remote::cli {
namespace {

namespace fs = std::filesystem;

// The string literals of a source file as they are written, without quotes. Adjacent ones are joined.
std::vector<std::string> read_literals(const std::string& text) {
  std::vector<std::string> literals;
  bool joins = false;  // only blanks and comments since the last literal
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (text.compare(at, 2, "//") == 0) {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '\'') {
      at += text.compare(at + 1, 1, "\\") == 0 ? 3 : 2;
      joins = false;
    } else if (c == '"') {
      std::string literal;
      if (at > 0 && text[at - 1] == 'R') {
        const std::size_t begin = text.find('(', at);
        const std::string end = ")" + text.substr(at + 1, begin - at - 1) + "\"";
        const std::size_t end_at = text.find(end, begin);
        literal = text.substr(begin + 1, end_at - begin - 1);
        at = end_at + end.size() - 1;
      } else {
        for (++at; at < text.size() && text[at] != '"'; ++at) {
          literal += text.substr(at, text[at] == '\\' ? 2 : 1);
          at += text[at] == '\\' ? 1 : 0;
        }
      }
      if (joins) {
        literals.back() += literal;
      } else {
        literals.push_back(literal);
      }
      joins = true;
    } else {
      joins = joins && std::isspace(static_cast<unsigned char>(c)) != 0;
    }
  }
  return literals;
}

// The lines in a literal, without "remote": those in backticks, and one behind a colon at the end. Values
// that are inserted later, and placeholders such as KEY, are replaced by 1.
std::vector<std::string> find_lines(const std::string& literal) {
  static const std::regex quoted("`remote ([^`]*)`");
  static const std::regex last(": remote ([a-z][^`;)]*)\\)?$");
  static const std::regex glued("(\\S)\\{[^}]*\\}");  // such as " --server NAME", or nothing
  static const std::regex value("\\{[^}]*\\}|\\b[A-Z]{2,}\\b");
  std::vector<std::string> lines;
  for (const std::regex& form : {quoted, last}) {
    for (std::sregex_iterator one(literal.begin(), literal.end(), form), end; one != end; ++one) {
      const std::string line = (*one)[1];
      if (!line.starts_with('{')) {  // otherwise its command is inserted
        lines.push_back(std::regex_replace(std::regex_replace(line, glued, "$1"), value, "1"));
      }
    }
  }
  return lines;
}

// Whether the program accepts the line. A single word is the name of a command, and needs no arguments.
bool is_accepted(const std::string& line) {
  const std::vector<std::string> words = shell_words(line);
  if (words.front() == "help" && words.size() == 2) {
    return words[1] == "1" || is_topic(words[1]);
  }
  if (words.front().starts_with('-') || words.front() == "__manual") {
    return line == "--help" || line == "--version" || line == "__manual";
  }
  return find_command(words.front()) != nullptr && (words.size() == 1 || parse_line(words).is_accepted);
}

TEST(HintLines, AreAccepted) {
  const std::set<std::string> sentences = {"chooses it", "pull 1 continues where this one stopped"};
  int count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(test::source_folder) / "src")) {
    if (entry.path().extension() != ".cpp") {
      continue;
    }
    for (const std::string& literal : read_literals(read_file(entry.path()))) {
      for (const std::string& line : find_lines(literal)) {
        ++count;
        EXPECT_TRUE(is_accepted(line) || sentences.contains(line)) << entry.path() << ": remote " << line;
      }
    }
  }
  EXPECT_GT(count, 100);
}

TEST(HintLines, AreFoundInASource) {
  EXPECT_EQ(read_literals("f(\"a \"  // \"no\"\n  \"b\\\"\", '\"', R\"x(c\")x\");"),
            (std::vector<std::string>{"a b\\\"", "c\""}));
  EXPECT_EQ(find_lines("`remote check{server}` shows it; to end it: remote job-kill {}"),
            (std::vector<std::string>{"check", "job-kill 1"}));
  EXPECT_TRUE(is_accepted("job-kill 1"));
  EXPECT_FALSE(is_accepted("check --network"));
  EXPECT_FALSE(is_accepted("job-lits"));
}

}  // namespace
}  // namespace remote::cli
