#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <remote/error.hpp>
#include <remote/launch_texts.hpp>

namespace remote {
namespace {

using Slots = std::vector<std::pair<std::string, int>>;

// Names and slots; 0 for none.
Slots slots_of(const std::vector<LaunchHost>& hosts) {
  Slots all;
  for (const LaunchHost& host : hosts) {
    all.emplace_back(host.name, host.slots.value_or(0));
  }
  return all;
}
Slots file(const std::string& text) {
  return slots_of(parse_hostfile(text, "hosts"));
}
std::string refusal(const std::string& text) {
  try {
    parse_hostfile(text, "hosts");
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Hostfile, TakesWhatMpiAndDeepSpeedWrite) {
  EXPECT_EQ(file("a slots=4\nb slots=2 max_slots=8\n"), (Slots{{"a", 4}, {"b", 2}}));
  EXPECT_EQ(file("# all\n\n  a  # the first\r\nb:3\nada@c slots = 2"), (Slots{{"a", 0}, {"b", 3}, {"c", 2}}));
  EXPECT_EQ(file("[::1]:2\nfe80::1\n[::2]\n"), (Slots{{"::1", 2}, {"fe80::1", 0}, {"::2", 0}}));
  EXPECT_EQ(parse_hostfile("\na\n", "hosts").front().where, "hosts:2");
}

TEST(Hostfile, WhatIsNotUnderstoodHasItsLine) {
  for (const char* line :
       {"a slots=0", "a slots=x", "a slots", "a:", "a:-1", "a b", "a slot=2", "@", "a slots="}) {
    EXPECT_THAT(refusal(std::string("ok\n") + line), ::testing::StartsWith("hosts:2: ")) << line;
  }
  EXPECT_THAT(refusal("# nothing\n"), ::testing::StartsWith("hosts: it names no host"));
  EXPECT_THAT(refusal(""), ::testing::StartsWith("hosts: "));
}

TEST(Hostfile, AListHasThemWithCommas) {
  EXPECT_EQ(slots_of(parse_host_list("a,b:2, c")), (Slots{{"a", 0}, {"b", 2}, {"c", 0}}));
  EXPECT_THROW(parse_host_list(","), Error);
  EXPECT_THROW(parse_host_list("a:many"), Error);
}

}  // namespace
}  // namespace remote
