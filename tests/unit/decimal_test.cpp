#include "base/decimal.hpp"

#include <gtest/gtest.h>

namespace remote {
namespace {

TEST(DecimalTest, TakesAWholeNumberAndNothingElse) {
  EXPECT_EQ(parse_decimal("0"), 0);
  EXPECT_EQ(parse_decimal("-2.5e3"), -2500);
  EXPECT_EQ(parse_decimal("1E-2"), 0.01);
  EXPECT_EQ(parse_decimal(".5"), 0.5);
  EXPECT_EQ(parse_decimal("5."), 5);
  EXPECT_EQ(parse_decimal("0.1"), 0.1);
  for (const char* text :
       {"", "-", ".", "e5", "+1", " 1", "1 ", "1e", "1,5", "0x10", "inf", "nan", "1e999", "--1"}) {
    EXPECT_EQ(parse_decimal(text), std::nullopt) << text;
  }
}

TEST(DecimalTest, SaysHowFarTheNumberGoes) {
  std::size_t length = 0;
  EXPECT_EQ(decimal_at("12.5ms", length), 12.5);
  EXPECT_EQ(length, 4U);
  EXPECT_EQ(decimal_at("3e", length), 3);
  EXPECT_EQ(length, 1U);
  EXPECT_EQ(decimal_at("1e-x", length), 1);
  EXPECT_EQ(length, 1U);
  EXPECT_EQ(decimal_at("2.3.4", length), 2.3);
  EXPECT_EQ(length, 3U);
  EXPECT_EQ(decimal_at("x", length), std::nullopt);
}

}  // namespace
}  // namespace remote
