#include "servers/shared.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.hpp"

namespace remote::servers {
namespace {
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Part = SharedFolders::Part;

TEST(SharedFolders, TheOthersGetWhatTheFirstHasDone) {
  SharedFolders folders;
  Part first(folders, "a");
  Part other(folders, "b");
  EXPECT_FALSE(first.waits_for("a"));
  EXPECT_TRUE(other.waits_for("a"));
  EXPECT_FALSE(other.look());
  {
    Part done(folders, "c");
    EXPECT_FALSE(done.waits_for("c"));
  }
  EXPECT_FALSE(other.look());
  {
    Part ending(folders, "d");
    Part waiting(folders, "e");
    EXPECT_TRUE(waiting.waits_for("d"));
    ending.done({PrepareReport{}, {"x"}});
    EXPECT_FALSE(waiting.look());  // it has not ended yet
  }
  std::optional<Part> ending(std::in_place, folders, "f");
  Part waiting(folders, "g");
  EXPECT_TRUE(waiting.waits_for("f"));
  ending->done({PrepareReport{}, {"x"}});
  ending.reset();
  ASSERT_TRUE(waiting.look());
  EXPECT_THAT(waiting.look()->removable, ElementsAre("x"));
}

TEST(SharedFolders, NobodyWaitsInACircleOrForOneThatHasNotBegun) {
  SharedFolders folders;
  Part a(folders, "a");
  Part b(folders, "b");
  Part c(folders, "c");
  EXPECT_FALSE(a.waits_for("nobody"));
  EXPECT_FALSE(a.waits_for(""));
  EXPECT_TRUE(a.waits_for("b"));
  EXPECT_FALSE(b.waits_for("a"));
  EXPECT_FALSE(b.waits_for("c"));  // another part waits for it
  EXPECT_FALSE(c.waits_for("a"));  // it is waiting itself
}

TEST(SharedFolders, AServerThatWasLostIsReplacedByOneThatWaits) {
  SharedFolders folders;
  std::optional<Part> lost(std::in_place, folders, "a");
  std::optional<Part> next(std::in_place, folders, "b");
  Part last(folders, "c");
  EXPECT_TRUE(next->waits_for("a"));
  EXPECT_TRUE(last.waits_for("a"));
  lost->failed(true);
  lost.reset();
  EXPECT_FALSE(next->look());
  EXPECT_FALSE(next->waits());
  EXPECT_FALSE(last.look());
  EXPECT_TRUE(last.waits());
  EXPECT_EQ(last.first(), "b");
  next->failed(false);
  next.reset();
  EXPECT_THROW(last.look(), Error);
}

TEST(SharedRecord, HoldsWhatIsNotKnownBetter) {
  const TempFolder folder;
  config::Config config;
  config.project = folder.path();
  const SharedRecord record(config);
  EXPECT_THAT(record.others("a"), IsEmpty());
  record.update({"a", "b", "c", "x"}, {{"a", "b", "c"}});
  EXPECT_THAT(record.others("b"), ElementsAre("a", "c"));
  EXPECT_THAT(record.others("x"), IsEmpty());
  record.update({"a", "x"}, {});  // a alone of its group
  EXPECT_THAT(record.others("a"), ElementsAre("b", "c"));
  record.update({"a", "d"}, {{"a", "d"}});
  EXPECT_THAT(record.others("d"), ElementsAre("a", "b", "c"));
  record.update({"a", "b"}, {});  // not any more
  EXPECT_THAT(record.others("a"), IsEmpty());
  EXPECT_THAT(record.others("c"), ElementsAre("d"));
}

}  // namespace
}  // namespace remote::servers
