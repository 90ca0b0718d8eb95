#include "servers/match.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>

namespace remote::servers {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> taken(const std::string& pattern, const std::vector<std::string>& names) {
  MatchAnswer answer{PathPattern(pattern)};
  for (const std::string& name : names) {
    const std::string text = "@remote1 pull name |" + name;
    AnswerLine line(text);
    answer.take(line);
  }
  return answer.names;
}

TEST(MatchAnswer, TakesNamesThatFit) {
  EXPECT_THAT(taken("a*/*.pt", {"a b/1.pt", "a/ 2 .pt"}), ElementsAre("a b/1.pt", "a/ 2 .pt"));
  EXPECT_THAT(taken(".*", {".hidden"}), ElementsAre(".hidden"));
  EXPECT_THAT(taken("a*/", {"ab/"}), ElementsAre("ab/"));
}

TEST(MatchAnswer, AServerNamesNothingElse) {
  for (const char* name : {"", "x.pt", "results", "results/../x.pt", "results/a/x.pt", "/results/x.pt",
                           "results/.x.pt", "results//x.pt", "../x.pt", "results/x.pt/"}) {
    EXPECT_THROW(taken("results/*.pt", {name}), Error) << name;
  }
  EXPECT_THROW(taken("results/*", {"results/.."}), Error);
  EXPECT_THROW(taken("results/.*", {"results/.."}), Error);
  EXPECT_THROW(taken("*", std::vector<std::string>(1001, "x")), Error);
}

}  // namespace
}  // namespace remote::servers
