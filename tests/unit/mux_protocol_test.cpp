#include "ssh/mux_protocol.hpp"

#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "base/hashing.hpp"
#include "ssh/agent.hpp"

namespace remote::ssh::mux {
namespace {

std::string number(std::uint32_t value) {
  return agent_number(value);
}
std::string framed(const std::string& body) {
  return number(static_cast<std::uint32_t>(body.size())) + body;
}
Message only(std::string data) {
  auto message = take_message(data);
  EXPECT_TRUE(message.has_value());
  EXPECT_EQ(data, "");
  return message.value_or(Message());
}

TEST(MuxProtocol, RequestsAreAsOpensshReadsThem) {
  using namespace std::string_literals;
  EXPECT_EQ(hello(), "\0\0\0\x08\0\0\0\x01\0\0\0\x04"s);
  EXPECT_EQ(alive_check(7), "\0\0\0\x08\x10\0\0\x04\0\0\0\x07"s);
  EXPECT_EQ(new_session(2, "id"),
            framed("\x10\0\0\x02\0\0\0\x02"s + number(0) + number(0) + number(0) + number(0) + number(0) +
                   number(0xffffffff) + number(0) + number(2) + "id"));
  EXPECT_EQ(new_stdio_forward(3, "::1", 8080),
            framed("\x10\0\0\x08\0\0\0\x03"s + number(0) + number(3) + "::1" + number(8080)));
}

TEST(MuxProtocol, AnswersAreTakenOneByOneHoweverTheyArrive) {
  const std::string all = framed(number(1) + number(4)) + framed(number(0x80000006) + number(2) + number(9)) +
                          framed(number(0x80000004) + number(9) + number(3)) +
                          framed(number(0x80000003) + number(2) + number(2) + "no") +
                          framed(number(0x80000005) + number(1) + number(4711)) +
                          framed(number(0x80000001) + number(5)) + framed(number(0x99999999) + "what");
  std::vector<Message> heard;
  std::string data;
  for (const char c : all) {
    data += c;
    while (auto message = take_message(data)) {
      heard.push_back(*message);
    }
  }
  ASSERT_EQ(heard.size(), 7U);
  EXPECT_EQ(heard[0].kind, Kind::hello);
  EXPECT_EQ(heard[0].number, 4U);
  EXPECT_EQ(heard[1].kind, Kind::opened);
  EXPECT_EQ(heard[1].about, 2U);
  EXPECT_EQ(heard[1].number, 9U);
  EXPECT_EQ(heard[2].kind, Kind::exited);
  EXPECT_EQ(heard[2].number, 3U);
  EXPECT_EQ(heard[3].kind, Kind::refused);
  EXPECT_EQ(heard[3].text, "no");
  EXPECT_EQ(heard[4].number, 4711U);
  EXPECT_EQ(heard[5].kind, Kind::ok);
  EXPECT_EQ(heard[6].kind, Kind::other);
}

TEST(MuxProtocol, WhatNoMasterSaysIsAnError) {
  for (const std::string& data :
       {number(0), number(3) + "abc", number(longest_message + 1), number(0xffffffff),
        framed(number(0x80000004) + number(9)),                             // no code
        framed(number(0x80000004) + number(9) + number(3) + "x"),           // too long
        framed(number(0x80000003) + number(2) + number(0xffffffff) + "a"),  // a text longer than its message
        framed(number(0x80000003) + number(2) + number(3) + "ab"), framed(number(1))}) {
    std::string copy = data;
    EXPECT_THROW(take_message(copy), Error) << base64_encode(data);
  }
}

TEST(MuxProtocol, WhatIsNotWholeYetIsWaitedFor) {
  const std::string whole = framed(number(0x80000003) + number(2) + number(4) + "gone");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::string part = whole.substr(0, size);
    EXPECT_FALSE(take_message(part).has_value()) << size;
    EXPECT_EQ(part.size(), size);
  }
  EXPECT_EQ(only(whole).text, "gone");
}

}  // namespace
}  // namespace remote::ssh::mux
