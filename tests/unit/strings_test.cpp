#include "base/strings.hpp"

#include <random>

#include <fnmatch.h>
#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "base/line_pattern.hpp"
#include "support/instants.hpp"

namespace remote {
namespace {

TEST(LinePattern, FindsWhatFollowsANul) {
  using namespace std::string_view_literals;
  EXPECT_TRUE(LinePattern("loss").is_in("a\0loss 3"sv));
  EXPECT_TRUE(LinePattern("^a.loss").is_in("a\0loss 3"sv));
  EXPECT_TRUE(LinePattern("3$").is_in("a\0loss 3"sv));
  EXPECT_FALSE(LinePattern("^loss").is_in("a\0loss 3"sv));
  EXPECT_FALSE(LinePattern("a$").is_in("a\0loss 3"sv));
}

struct GlobCase {
  const char* pattern;
  std::vector<std::string> matched;
  std::vector<std::string> refused;
};

TEST(Glob, MatchesWholeNames) {
  const std::vector<GlobCase> cases = {
      {"gpu-*", {"gpu-12"}, {}},
      {"*", {"", "a/b", ".hidden"}, {}},
      {"gpu-?", {"gpu-1"}, {"gpu-12"}},
      {"gpu", {"gpu"}, {"gpu-1"}},
      {"GPU", {}, {"gpu"}},
      // character sets
      {"gpu-[1-3]", {"gpu-2"}, {"gpu-4"}},
      {"gpu-[!13]", {"gpu-2"}, {"gpu-3"}},
      {"gpu-[^13]", {"gpu-2"}, {"gpu-3"}},
      {"[]a]", {"]"}, {}},
      {"[a-]", {"-"}, {}},
      // Slash, backslash and dot are ordinary characters.
      {"a?b", {"a/b"}, {}},
      {"a\\*", {"a\\bc"}, {"a*"}},
      // An unclosed set is matched literally.
      {"[ab", {"[ab"}, {"a"}},
      {"*[", {"gpu["}, {}},
  };
  for (const GlobCase& one : cases) {
    for (const std::string& name : one.matched) {
      EXPECT_TRUE(glob_match(one.pattern, name)) << one.pattern << " and " << name;
    }
    for (const std::string& name : one.refused) {
      EXPECT_FALSE(glob_match(one.pattern, name)) << one.pattern << " and " << name;
    }
  }
}

// The C library has other rules, too, so the patterns have no '.', ':' or '='.
TEST(Glob, MatchesLikeTheCLibrary) {
  std::mt19937 random(1);
  const auto make = [&](std::string_view letters) {
    std::string text(random() % 7, ' ');
    for (char& c : text) {
      c = letters[random() % letters.size()];
    }
    return text;
  };
  int matched = 0;
  for (int i = 0; i < 100000; ++i) {
    const std::string pattern = make("ab-]![*?");
    const std::string name = make("ab-]");
    const bool expected = ::fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
    matched += expected ? 1 : 0;
    ASSERT_EQ(glob_match(pattern, name), expected) << pattern << " and " << name;
  }
  EXPECT_GT(matched, 1000);
}

TEST(Clock, ReadsTheOneFormOfAnInstant) {
  const Instant at = instant(1795246200);
  EXPECT_EQ(format_utc(at), "2026-11-21T07:30:00Z");
  EXPECT_EQ(parse_utc("2026-11-21T07:30:00Z"), at);
  EXPECT_EQ(parse_utc("1970-01-01T00:00:00Z"), Instant());
  for (const char* bad :
       {"", "2026-11-21", "2026-11-21T7:30:00Z", "2026-02-30T00:00:00Z", "2026-11-21T24:00:00Z",
        "2026-11-21T07:30:00Z ", " 2026-11-21T07:30:00Z", "1969-12-31T23:59:59Z"}) {
    EXPECT_EQ(parse_utc(bad), std::nullopt) << bad;
  }
}

TEST(LowerCase, ChangesAsciiAlone) {
  EXPECT_EQ(lower_case("GPU-1 \xC3\x84 [Z]"), "gpu-1 \xC3\x84 [z]");
}

TEST(ReplaceAll, TakesEachOnceAndLeavesWhatIsPutIn) {
  EXPECT_EQ(replace_all("a%b%%", "%", "%%"), "a%%b%%%%");
  EXPECT_EQ(replace_all("ababa", "aba", "-"), "-ba");
  EXPECT_EQ(replace_all("", "x", "y"), "");
  EXPECT_EQ(replace_all("none", "x", "y"), "none");
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

TEST(Strings, TheFirstNamesAndHowManyMore) {
  EXPECT_EQ(join_first({}, 2), "");
  EXPECT_EQ(join_first({"a", "b"}, 2), "a, b");
  EXPECT_EQ(join_first({"a", "b", "c"}, 2), "a, b and 1 more");
  EXPECT_EQ(join_first({"a", "b", "c", "d"}, 2, "; "), "a; b; and 2 more");
}

TEST(Strings, AnIpv6AddressHasBracketsBeforeThePort) {
  EXPECT_EQ(host_and_port("gpu.example", 2222), "gpu.example:2222");
  EXPECT_EQ(host_and_port("2001:db8::1", 2222), "[2001:db8::1]:2222");
}

TEST(Strings, OnlyTheEndOfALongTextStays) {
  std::string text;
  for (int i = 0; i < 100; ++i) {
    append_end(text, "12345", 10);
    EXPECT_LE(text.size(), 20U);
  }
  EXPECT_TRUE(text.ends_with("1234512345"));
}

}  // namespace
}  // namespace remote
