#include "base/strings.hpp"

#include <gtest/gtest.h>

namespace remote {
namespace {

TEST(Glob, MatchesWholeNames) {
  EXPECT_TRUE(glob_match("gpu-*", "gpu-12"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("gpu-?", "gpu-1"));
  EXPECT_FALSE(glob_match("gpu-?", "gpu-12"));
  EXPECT_FALSE(glob_match("gpu", "gpu-1"));
  EXPECT_FALSE(glob_match("GPU", "gpu"));
}

TEST(Glob, Sets) {
  EXPECT_TRUE(glob_match("gpu-[1-3]", "gpu-2"));
  EXPECT_FALSE(glob_match("gpu-[1-3]", "gpu-4"));
  EXPECT_TRUE(glob_match("gpu-[!13]", "gpu-2"));
  EXPECT_TRUE(glob_match("gpu-[^13]", "gpu-2"));
  EXPECT_FALSE(glob_match("gpu-[!13]", "gpu-3"));
  EXPECT_TRUE(glob_match("[]a]", "]"));
  EXPECT_TRUE(glob_match("[a-]", "-"));
}

TEST(Glob, SlashBackslashAndDotMeanNothing) {
  EXPECT_TRUE(glob_match("*", "a/b"));
  EXPECT_TRUE(glob_match("a?b", "a/b"));
  EXPECT_TRUE(glob_match("*", ".hidden"));
  EXPECT_TRUE(glob_match("a\\*", "a\\bc"));
  EXPECT_FALSE(glob_match("a\\*", "a*"));
}

TEST(Glob, ASetWithoutEndIsItsCharacters) {
  EXPECT_TRUE(glob_match("[ab", "[ab"));
  EXPECT_FALSE(glob_match("[ab", "a"));
  EXPECT_TRUE(glob_match("*[", "gpu["));
}

TEST(Counted, OneAndMore) {
  EXPECT_EQ(counted(1, "job"), "1 job");
  EXPECT_EQ(counted(0, "job"), "0 jobs");
  EXPECT_EQ(counted(2, "job"), "2 jobs");
}

TEST(DidYouMean, OnlyWhatIsALikelyTypingError) {
  EXPECT_EQ(did_you_mean("job-lst", {"job-run", "job-list"}), "did you mean 'job-list'?");
  EXPECT_EQ(did_you_mean("hsotname", {"hostname", "username"}), "did you mean 'hostname'?") << "swapped";
  EXPECT_EQ(did_you_mean("word", {"job-run", "job-list"}), "");
  EXPECT_EQ(did_you_mean(std::string(65, 'a'), {std::string(64, 'a')}), "") << "too long to be one";
}

}  // namespace
}  // namespace remote
