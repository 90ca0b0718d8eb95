#include "base/json.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace remote {
namespace {

TEST(Json, AByteThatIsNoUtf8BecomesTheReplacementCharacter) {
  EXPECT_EQ(dump_json(nlohmann::json{{"name", "a\xff"}}), "{\n  \"name\": \"a\xef\xbf\xbd\"\n}\n");
  EXPECT_EQ(dump_json(nlohmann::ordered_json{{"\xc3", 1}}), "{\n  \"\xef\xbf\xbd\": 1\n}\n");
}

TEST(Json, EscapesWhatATerminalWouldObey) {
  const std::string text =
      "red \x1b[31m \xc2\x9b"
      "31m \xc2\x80 \x7f \xe2\x80\xae ü \xc2\xa0 漢 “x” \xf0\x9f\x98\x80";
  const std::string line = dump_json_line(nlohmann::json{{"a", text}});
  EXPECT_EQ(
      line,
      "{\"a\":\"red \\u001b[31m \\u009b31m \\u0080 \\u007f \\u202e ü \xc2\xa0 漢 “x” \xf0\x9f\x98\x80\"}");
  EXPECT_EQ(nlohmann::json::parse(line)["a"], text);
  EXPECT_EQ(dump_json(nlohmann::ordered_json{{"\xc2\x85", 1}}), "{\n  \"\\u0085\": 1\n}\n");
}

}  // namespace
}  // namespace remote
