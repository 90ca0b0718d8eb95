#include "base/format.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace remote {
namespace {

TEST(Format, InsertsTextsAndNumbers) {
  const std::string text = "b";
  EXPECT_EQ(text::format("nothing"), "nothing");
  EXPECT_EQ(text::format(""), "");
  EXPECT_EQ(text::format("{}", ""), "");
  EXPECT_EQ(text::format("{}", std::string_view()), "");
  EXPECT_EQ(text::format("{}{}, {}.", "a", text, std::string_view("{}")), "ab, {}.");
  EXPECT_EQ(text::format("<{}{}>", '\0', 'c'), std::string("<\0c>", 4));
  EXPECT_EQ(text::format("/proc/{}/task/{}", 12, 0U), "/proc/12/task/0");
}

TEST(Format, WritesEveryInteger) {
  using Signed = std::numeric_limits<std::int64_t>;
  using Unsigned = std::numeric_limits<std::uint64_t>;
  EXPECT_EQ(text::format("{} {}", Signed::min(), Signed::max()), "-9223372036854775808 9223372036854775807");
  EXPECT_EQ(text::format("{} {:x}", Unsigned::max(), Unsigned::max()),
            "18446744073709551615 ffffffffffffffff");
  EXPECT_EQ(text::format("{} {}", -1, static_cast<short>(-32768)), "-1 -32768");
}

TEST(Format, WritesHexadecimalDigits) {
  const unsigned char byte = 0x0a;
  EXPECT_EQ(text::format("{:x} {:02x} {:02X} {:04x}", 0U, byte, byte, 0xabcdeU), "0 0a 0A abcde");
  EXPECT_EQ(text::format("{:04x}{:X}", 0xbcU, 0xbcU), "00bcBC");
}

}  // namespace
}  // namespace remote
