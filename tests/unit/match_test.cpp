#include "servers/match.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <remote/error.hpp>

namespace remote::servers {
namespace {

void check(const std::string& pattern, const std::vector<std::string>& names) {
  check_matches(PathPattern(pattern), names);
}

TEST(Matches, NamesThatFitAreTaken) {
  EXPECT_NO_THROW(check("a*/*.pt", {"a b/1.pt", "a/ 2 .pt"}));
  EXPECT_NO_THROW(check(".*", {".hidden"}));
  EXPECT_NO_THROW(check("a*/", {"ab/"}));
  EXPECT_NO_THROW(check("*", std::vector<std::string>(1000, "x")));
}

TEST(Matches, AServerNamesNothingElse) {
  for (const char* name : {"", "x.pt", "results", "results/../x.pt", "results/a/x.pt", "/results/x.pt",
                           "results/.x.pt", "results//x.pt", "../x.pt", "results/x.pt/"}) {
    EXPECT_THROW(check("results/*.pt", {"results/x.pt", name}), Error) << name;
  }
  EXPECT_THROW(check("results/*", {"results/.."}), Error);
  EXPECT_THROW(check("results/.*", {"results/.."}), Error);
  EXPECT_THROW(check("*", std::vector<std::string>(1001, "x")), Error);
}

}  // namespace
}  // namespace remote::servers
