#include <gtest/gtest.h>
#include <remote/job.hpp>

namespace remote {
namespace {

TEST(JobId, IsNothingButThirtyTwoDigits) {
  const std::string digits = "0123456789abcdef0123456789abcdef";
  ASSERT_TRUE(JobId::parse(digits));
  EXPECT_EQ(JobId::parse(digits)->text(), digits);
  for (const std::string& bad :
       {std::string(), digits.substr(1), digits + "0", std::string("../../etc"), "A" + digits.substr(1),
        "g" + digits.substr(1), "/" + digits.substr(1), digits.substr(1) + "\n", digits.substr(1) + " ",
        digits.substr(1) + std::string(1, '\0')}) {
    EXPECT_FALSE(JobId::parse(bad)) << bad;
  }
}

TEST(JobId, IsOrderedAndNewEachTime) {
  EXPECT_LT(JobId(), JobId::random());
  EXPECT_NE(JobId::random(), JobId::random());
  EXPECT_EQ(JobId(), JobId::parse(JobId().text()));
}

}  // namespace
}  // namespace remote
