#include "servers/patterns.hpp"

#include <gmock/gmock.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "servers/sync.hpp"

namespace remote::servers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Why = UselessPattern::Why;

std::vector<std::string> texts(std::string_view file) {
  std::vector<std::string> found;
  for (const Pattern& pattern : parse_patterns(file)) {
    found.push_back(std::to_string(pattern.line) + (pattern.shows ? " + " : " - ") + pattern.text);
  }
  return found;
}

TEST(Patterns, AreReadAsRsyncReadsThem) {
  EXPECT_THAT(texts("# a\n; b\n\n*.tmp\n- data/\n+ keep\n#x\n x \n"),
              ElementsAre("4 - *.tmp", "5 - data/", "6 + keep", "8 -  x "));
  EXPECT_THAT(texts("one\r\ntwo\rthree"), ElementsAre("1 - one", "2 - two", "3 - three"));
  EXPECT_THAT(texts("gone\n!\nstays\n!name\n"), ElementsAre("3 - stays", "4 - !name"));
  EXPECT_THAT(texts(""), IsEmpty());
}

TEST(Patterns, ThoseThatMatchNothingAreFound) {
  const TempFolder project;
  config::Config config;
  config.project = project.path();
  config.file = project.path() / ".remote/configs.yaml";
  make_folders(project.path() / ".remote");
  const auto why = [&](const std::string& line) -> std::optional<Why> {
    write_file_atomic(project.path() / ".remote/exclude.txt", "fine\n" + line + "\n");
    const std::vector<UselessPattern> found = useless_patterns(config);
    EXPECT_LE(found.size(), 1U) << line;
    EXPECT_TRUE(found.empty() || (found[0].line == 2)) << line;
    return found.empty() ? std::nullopt : std::optional(found[0].why);
  };
  EXPECT_EQ(why("!keep"), Why::negated);
  EXPECT_EQ(why("data/ # big"), Why::comment);
  EXPECT_EQ(why("data/\t# big"), Why::comment);
  EXPECT_EQ(why("data/ "), Why::blank);
  EXPECT_EQ(why("  data/"), Why::blank);
  EXPECT_EQ(why("+  keep"), Why::blank);
  EXPECT_EQ(why("\"data\""), Why::quoted);
  EXPECT_EQ(why("'data/'"), Why::quoted);
  EXPECT_EQ(why("./data/"), Why::dots);
  EXPECT_EQ(why("/./data/"), Why::dots);
  EXPECT_EQ(why("../other"), Why::dots);
  EXPECT_EQ(why("."), Why::dots);
  EXPECT_EQ(why("~/data"), Why::absolute);
  EXPECT_EQ(why(project.path().string() + "/data"), Why::absolute);
  EXPECT_EQ(why("+keep"), Why::sign);
  EXPECT_EQ(why("-data/"), Why::sign);
  EXPECT_EQ(why("*.{pt,bin}"), Why::braces);
  EXPECT_EQ(why("data\\raw"), Why::backslash);
  EXPECT_EQ(why("data\\"), Why::backslash);
  for (const char* comment : {"*.pt // big", "data/\t// big", "data // big", "*.pt ; big"}) {
    EXPECT_EQ(why(comment), Why::comment) << comment;
  }
  for (const char* home : {"~bob/x", "~bob.b-c/", "~bob/*.pt"}) {
    EXPECT_EQ(why(home), Why::absolute) << home;
  }
  for (const char* slashes : {"data//", "//data", "a//b", "**//x"}) {
    EXPECT_EQ(why(slashes), Why::slashes) << slashes;
  }
  for (const char* open : {"[abc", "x[", "[]", "[!]", "[^]x", "[a]/[b", "[a\\]", "x/[*"}) {
    EXPECT_EQ(why(open), Why::bracket) << open;
  }
  for (const char* variable : {"$HOME/x", "/$HOME", "data/$USER/", "${HOME}/x", "$HOME"}) {
    EXPECT_EQ(why(variable), Why::variable) << variable;
  }
  EXPECT_EQ(why("- "), Why::empty);
  EXPECT_EQ(why(std::string(5000, 'x')), Why::too_long);
  for (const char* good :
       {"*.tmp",         "/data/",    "data/**", "+ *.py",     "- *",   "with space", "a#b",
        ".git",          "..x",       "a.b/",    "[a-z]\\*",   "\\[x]", "{x}",        "a,b",
        "it's",          "**/cache",  "~",       "*~",         "!",     "~bob",       "~*/x",
        "[]]",           "[!]]",      "[^a]",    "[a-z][0-9]", "[[]",   "\\[abc",     "[\\]]",
        "$RECYCLE.BIN/", "*$1.class", "$1/",     "a$",         "$",     "x$y/",       "http:/"}) {
    EXPECT_EQ(why(good), std::nullopt) << good;
  }
  write_file_atomic(project.path() / "!keep", "");
  EXPECT_EQ(why("!keep"), std::nullopt) << "there is a file of that name";
}

TEST(Patterns, OnlyTheSenderGetsTheProjects) {
  const TempFolder project;
  config::Config config;
  config.project = project.path();
  make_folders(project.path() / ".remote");
  write_file_atomic(project.path() / ".remote/exclude.txt", "\xEF\xBB\xBFsecret\n+ shown\n- \n");
  std::vector<std::string> rules = split(selection_rules(config, {"line\nbreak", "st*r"}), '\0');
  EXPECT_EQ(rules.back(), "");
  rules.pop_back();
  EXPECT_THAT(rules, ElementsAre("H /line\nbreak", "H /st\\*r", "H /.jobs", "H /.remote-scripts",
                                 "H /.remote", "H .rsync-partial", "H secret", "S shown"));
}

TEST(RsyncLines, OnlyThoseWithTheMarkOfThisRunCount) {
  const std::string mark = make_item_mark();
  EXPECT_NE(mark, make_item_mark());
  SyncReport report;
  for (const std::string& begin : std::vector<std::string>{"@item ", "", "@ ", mark.substr(1), " " + mark}) {
    add_rsync_line(report, mark, begin + ">f+++++++++ 5 forged");
    add_rsync_line(report, mark, begin + "*deleting   0 forged");
  }
  EXPECT_THAT(report.changed, IsEmpty());
  EXPECT_THAT(report.removed, IsEmpty());
  EXPECT_EQ(report.bytes, 0U);
  for (const char* name : {"../up", "/etc/passwd", "a/../../b", "..", ""}) {
    add_rsync_line(report, mark, mark + ">f+++++++++ 5 " + name);
    add_rsync_line(report, mark, mark + "*deleting   0 " + name);
    add_rsync_line(report, mark, std::string(name) + " is newer");
  }
  EXPECT_THAT(report.changed, IsEmpty());
  EXPECT_THAT(report.removed, IsEmpty());
  EXPECT_THAT(report.newer, IsEmpty());
  add_rsync_line(report, mark, mark + ">f+++++++++ 5 ..a/b..");
  add_rsync_line(report, mark, "c d is newer");
  add_rsync_line(report, mark, "ignoring unsafe symlink without quotes");
  EXPECT_THAT(report.changed, ElementsAre("..a/b.."));
  EXPECT_THAT(report.newer, ElementsAre("c d"));
}

}  // namespace
}  // namespace remote::servers
