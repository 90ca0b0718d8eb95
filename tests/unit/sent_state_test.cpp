#include "servers/sent_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/hashing.hpp"

namespace remote::servers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::string_literals;

ProjectState state(const std::string& text) {
  const auto parsed = ProjectState::parse(text);
  EXPECT_TRUE(parsed);
  return parsed.value_or(ProjectState());
}

TEST(SentState, ATextIsReadBackAsItIs) {
  const std::string text = "1 -5 a b\0"s + "12 1700000000123456789 c\nd\0"s;
  EXPECT_EQ(state(text).text(), text);
  EXPECT_EQ(state(text).files().at(1), (FileStamp{"c\nd", 12, 1700000000123456789}));
  EXPECT_THAT(state("").files(), IsEmpty());
}

TEST(SentState, ADamagedTextIsNone) {
  for (const std::string& text :
       {"1 2 a"s, "1 2\0"s, "1 2 \0"s, "x 2 a\0"s, "1 x a\0"s, "-1 2 a\0"s, "1 2 b\0"s + "1 2 a\0"s, "\0"s}) {
    EXPECT_FALSE(ProjectState::parse(text)) << text;
  }
}

TEST(SentState, AnotherSizeOrTimeOrNameIsAChange) {
  const ProjectState then = state("1 1 a\0"s + "1 1 b\0"s + "1 1 d\0"s);
  EXPECT_THAT(then.changed_since(then), IsEmpty());
  EXPECT_THAT(state("1 1 a\0"s).changed_since(then), IsEmpty()) << "what is gone here stays there";
  EXPECT_THAT(state("2 1 a\0"s + "1 2 b\0"s + "1 1 c\0"s + "1 1 d\0"s + "1 1 e\0"s).changed_since(then),
              ElementsAre("a", "b", "c", "e"));
  EXPECT_THAT(state("2 1 a\0"s + "1 1 b\0"s + "1 1 c\0"s).differing_from(then), ElementsAre("a", "c", "d"));
  EXPECT_THAT(then.newer_than(0), ElementsAre("a", "b", "d"));
  EXPECT_THAT(then.newer_than(1), IsEmpty());
  // rsync notices a different size, second or name.
  EXPECT_THAT(state("1 2 a\0"s).hidden_changes_since(then), ElementsAre("a"));
  EXPECT_THAT(state("1 1 a\0"s + "2 2 b\0"s + "1 2 c\0"s + "1 2000000000 d\0"s).hidden_changes_since(then),
              IsEmpty());
}

TEST(SentState, TheListForAServerHasWholeSeconds) {
  const ProjectState some = state("1 -5 a b\0"s + "12 1700000000999999999 c\0"s);
  EXPECT_EQ(some.listed(), "1 -1 a b\n12 1700000000 c\n");
  EXPECT_EQ(some.without({"a b"}).listed(), "12 1700000000 c\n");
  ASSERT_NE(some.find("c"), nullptr);
  EXPECT_EQ(some.find("c")->size, 12U);
  EXPECT_EQ(some.find("b"), nullptr);
}

// The list of the files sent to a launch exists as long as the launch's record, no matter what is sent later.
TEST(SentState, WhatIsKeptGoesWithTheFolderThatKeepsIt) {
  const TempFolder folder("remote-sent-");
  config::Config config;
  config.project = folder.path();
  make_folders(folder.path() / ".remote/sent");
  make_folders(folder.path() / "record");
  const auto add = [&](const std::string& text) {
    write_file_atomic(folder.path() / ".remote/sent" / (".tree." + sha256_hex(text)), text);
    return sha256_hex(text);
  };
  const std::string small = "1 1 a\0"s;
  const std::string large = "1 1 " + std::string(1U << 20U, 'x') + '\0';
  const std::string forgotten = add("1 1 b\0"s);
  keep_sent(config, add(small), folder.path() / "record");
  keep_sent(config, add(large), folder.path() / "record");
  keep_sent(config, sha256_hex("nothing"), folder.path() / "record");
  remove_old_trees(config);
  EXPECT_EQ(sent_text(config, sha256_hex(small)), small);
  EXPECT_EQ(sent_text(config, sha256_hex(large)), "");
  EXPECT_EQ(sent_text(config, forgotten), "");
  std::filesystem::remove_all(folder.path() / "record");
  remove_old_trees(config);
  EXPECT_EQ(sent_text(config, sha256_hex(small)), "");
}

}  // namespace
}  // namespace remote::servers
