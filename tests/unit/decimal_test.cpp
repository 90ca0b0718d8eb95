#include "base/decimal.hpp"

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

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
  EXPECT_EQ(parse_decimal("0.10000000000000001"), 0.1);
  EXPECT_EQ(parse_decimal("1764190000.1230001"), 1764190000.1230001);
  EXPECT_EQ(parse_decimal("1e308"), 1e308);
  EXPECT_EQ(parse_decimal("1e-400"), 0);
  EXPECT_EQ(parse_decimal("123456789012345678901234567890"), 123456789012345678901234567890.0);
  for (const char* text :
       {"", "-", ".", "e5", "+1", " 1", "1 ", "1e", "1,5", "0x10", "inf", "nan", "1e999", "--1"}) {
    EXPECT_EQ(parse_decimal(text), std::nullopt) << text;
  }
}

TEST(DecimalTest, WritesAsFewDigitsAsAreNeeded) {
  const std::vector<std::pair<double, const char*>> cases = {{0, "0"},
                                                             {-0.0, "0"},
                                                             {1, "1"},
                                                             {-12, "-12"},
                                                             {0.1, "0.1"},
                                                             {100, "100"},
                                                             {2.5, "2.5"},
                                                             {-0.00125, "-0.00125"},
                                                             {9.995, "9.995"},
                                                             {1e16, "10000000000000000"},
                                                             {1e17, "1e17"},
                                                             {1e-5, "0.00001"},
                                                             {2.5e-7, "2.5e-7"},
                                                             {1e-9, "1.0000000000000001e-9"},
                                                             {1e21, "1e21"},
                                                             {1.5e300, "1.5000000000000001e300"},
                                                             {1.0 / 3, "0.33333333333333331"},
                                                             {1764190000.123, "1764190000.123"},
                                                             {99999999999999.9, "99999999999999.9"},
                                                             {0.99999999999999989, "0.99999999999999989"}};
  for (const auto& [value, text] : cases) {
    EXPECT_EQ(format_decimal(value), text);
  }
}

TEST(DecimalTest, WritesWhatOthersReadExactly) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const double value =
        std::ldexp(static_cast<double>(random() >> 11U), static_cast<int>(random() % 80) - 100) *
        (random() % 2 == 0 ? 1 : -1);
    const std::string text = format_decimal(value);
    ASSERT_EQ(std::strtod(text.c_str(), nullptr), value) << text;
    ASSERT_NEAR(parse_decimal(text).value(), value, std::abs(value) * 3e-16) << text;
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
