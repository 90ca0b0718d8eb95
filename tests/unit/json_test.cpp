#include "base/json.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace remote {
namespace {

TEST(Json, AByteThatIsNoUtf8BecomesTheReplacementCharacter) {
  EXPECT_EQ(dump_json(nlohmann::json{{"name", "a\xff"}}), "{\n  \"name\": \"a\xef\xbf\xbd\"\n}\n");
  EXPECT_EQ(dump_json(nlohmann::ordered_json{{"\xc3", 1}}), "{\n  \"\xef\xbf\xbd\": 1\n}\n");
}

}  // namespace
}  // namespace remote
