#include <gtest/gtest.h>

#include "ssh/agent.hpp"

namespace remote::ssh {
namespace {

std::string framed(const std::string& text) {
  return std::string{'\0', '\0', '\0', static_cast<char>(text.size())} + text;
}

TEST(AgentFilter, KeepsTheNamedKeys) {
  const std::string answer =
      std::string("\x0c\0\0\0\2", 5) + framed("one") + framed("comment") + framed("two") + framed("");
  EXPECT_EQ(filter_identities(answer, {"two"}), std::string("\x0c\0\0\0\1", 5) + framed("two") + framed(""));
  EXPECT_EQ(filter_identities(answer, {"one", "two"}), answer);
  EXPECT_EQ(filter_identities(answer, {"three"}), std::string("\x0c\0\0\0\0", 5));
}

TEST(AgentFilter, AMalformedListIsEmpty) {
  const std::string none("\x0c\0\0\0\0", 5);
  for (const std::string& text : {std::string(), std::string("\x05"), std::string("\x0c\xff\xff\xff\xff", 5),
                                  std::string("\x0c\0\0\0\1\xff\xff\xff\xff", 9)}) {
    EXPECT_EQ(filter_identities(text, {"one"}), none);
  }
}

}  // namespace
}  // namespace remote::ssh
