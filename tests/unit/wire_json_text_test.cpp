#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "wire/json.hpp"
#include "wire/json_text.hpp"
#include "wire/parse_json.hpp"
#include "wire/read_json.hpp"

// The agent's own reader and writer of JSON, which do not use nlohmann_json.

namespace remote::wire {
namespace {

struct Sample {
  std::string text;
  double number = 0;
  std::vector<std::optional<int>> list{};
  std::map<std::string, std::uint64_t> map{};
  static constexpr auto fields() {
    return field_list(field("text", &Sample::text), field("number", &Sample::number),
                      field("list", &Sample::list), field("map", &Sample::map));
  }
};

TEST(JsonText, IsWhatOthersRead) {
  const Sample sample{"a\"\\\n\x01/\x7f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
                      0.1,
                      {1, std::nullopt, -3},
                      {{"a", 1}, {"b\n", ~0ULL}}};
  const std::string text = to_json_text(sample);
  EXPECT_EQ(text, R"({"text":"a\"\\\u000a\u0001/\u007f\u00e9\u20ac\ud83d\ude00","number":0.1,)"
                  R"("list":[1,null,-3],"map":{"a":1,"b\u000a":18446744073709551615}})");
  EXPECT_EQ(Json::parse(text), to_json(sample));
  EXPECT_EQ(to_json_text(Sample{}), R"({"text":"","number":0,"list":[],"map":{}})");
}

TEST(JsonText, KeepsBytesThatAreNotUtf8) {
  const Sample sample{"\xff_\xe2\x82\x80\xed\xb2\x80\xef\xbf\xbd"};
  const std::string text = to_json_bytes(sample);
  EXPECT_EQ(text, R"({"text":"\udcff_\u2080\udced\udcb2\udc80\ufffd","number":0,"list":[],"map":{}})");
  EXPECT_EQ(read_json<Sample>(text).value().text, sample.text);
  for (const char* lone : {"\"\\udc7f\"", "\"\\udd00\""}) {
    EXPECT_FALSE(JsonDocument::parse(lone)) << lone;
  }
}

TEST(JsonText, ReplacesWhatIsNotJson) {
  const Sample sample{"\xff_\xe2\x82", std::numeric_limits<double>::infinity()};
  EXPECT_EQ(to_json_text(sample), R"({"text":"\ufffd_\ufffd\ufffd","number":null,"list":[],"map":{}})");
}

// The same value in nlohmann_json.
Json json_of(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      return nullptr;
    case Value::Kind::boolean:
      return value.boolean;
    case Value::Kind::integer:
      return static_cast<std::int64_t>(value.number);
    case Value::Kind::unsigned_integer:
      return value.number;
    case Value::Kind::real:
      return value.to_double();
    case Value::Kind::string:
      return std::string(value.string);
    case Value::Kind::list: {
      Json list = Json::array();
      for (const Value& each : value.values) {
        list.push_back(json_of(each));
      }
      return list;
    }
    case Value::Kind::object: {
      Json object = Json::object();
      for (const Value& each : value.values) {
        object[std::string(each.name)] = json_of(each);
      }
      return object;
    }
  }
  return nullptr;
}

TEST(JsonDocument, ReadsWhatNlohmannReads) {
  for (const char* text : {"{}",
                           "[]",
                           " [ ] ",
                           "null",
                           "true",
                           "false",
                           "0",
                           "-0",
                           "17",
                           "-17",
                           "18446744073709551615",
                           "-9223372036854775808",
                           "18446744073709551616",
                           "1.5",
                           "-2.5e3",
                           "1E-2",
                           R"("")",
                           R"("a b")",
                           R"("\"\\\/\b\f\n\r\t\u00e9\u20ac\ud83d\ude00\u0000")",
                           "\"\xc3\xa9\xf0\x9f\x98\x80\"",
                           R"({"a": {"b": [1, "x", {"c": null}]}, "": true,"d":[[],{}]})",
                           "[1,2 , 3]\n"}) {
    const auto document = JsonDocument::parse(text);
    ASSERT_TRUE(document) << text;
    EXPECT_EQ(json_of(document->value()), Json::parse(text)) << text;
  }
}

TEST(JsonDocument, RefusesWhatNlohmannRefuses) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "}",
                           "[",
                           "]",
                           "[1",
                           "[1,",
                           "[1,]",
                           "[,1]",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{\"a\":1",
                           "{1:1}",
                           "nul",
                           "nulll",
                           "True",
                           "tru",
                           "+1",
                           "-",
                           "--1",
                           "1e999",
                           "1 2",
                           "[1]x",
                           "\"",
                           "\"a",
                           "\"\\\"",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\u12g4\"",
                           "\"\\ud83d\"",
                           "\"\\ud83dx\"",
                           "\"\\ude00\"",
                           "\"\\ud83d\\u0041\"",
                           "\"a\nb\"",
                           "\"\x01\"",
                           "\"\xff\"",
                           "\"\xe2\x82\"",
                           "'a'",
                           "NaN",
                           "Infinity",
                           "[1}",
                           "{\"a\":1]"}) {
    EXPECT_FALSE(JsonDocument::parse(text)) << text;
    EXPECT_TRUE(Json::parse(text, nullptr, false).is_discarded()) << text;
  }
}

TEST(JsonDocument, BoundsTheDepth) {
  EXPECT_TRUE(JsonDocument::parse(std::string(max_json_depth, '[') + std::string(max_json_depth, ']')));
  EXPECT_FALSE(JsonDocument::parse(std::string(1'000'000, '[')));
}

TEST(JsonDocument, MayBeMoved) {
  auto first = JsonDocument::parse(R"({"name": "a", "x": ["b"]})");
  const JsonDocument document = *std::move(first);
  first.reset();
  EXPECT_EQ(document.value().find("name")->string, "a");
  EXPECT_EQ(document.value().find("x")->values[0].string, "b");
  EXPECT_EQ(document.value().find("y"), nullptr);
}

}  // namespace
}  // namespace remote::wire
