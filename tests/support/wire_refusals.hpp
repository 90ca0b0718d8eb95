#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "wire/json.hpp"

// Messages with one wrong value or one missing field.

namespace remote::test {

// Why the message is rejected; "" if it is accepted.
template <typename Message>
std::string refusal_of(const wire::Json& json) {
  try {
    wire::from_json<Message>(json);
  } catch (const wire::Malformed& error) {
    return error.what();
  }
  return "";
}

// A value that is invalid at this place in a message.
struct Odd {
  const char* place;
  wire::Json value;
  std::string reason;
};

template <typename Message>
void expect_refusals(const Message& message, const std::vector<Odd>& all) {
  const wire::Json good = wire::to_json(message);
  ASSERT_EQ(refusal_of<Message>(good), "");
  for (const auto& [place, value, reason] : all) {
    wire::Json changed = good;
    changed[wire::Json::json_pointer(place)] = value;
    EXPECT_EQ(refusal_of<Message>(changed), reason) << place;
  }
}

template <typename Message>
void expect_needs_all_fields(const Message& message) {
  const wire::Json good = wire::to_json(message);
  for (const auto& [name, value] : good.items()) {
    wire::Json less = good;
    less.erase(name);
    const std::string reason = refusal_of<Message>(less);
    EXPECT_EQ(reason, name == "kind" ? "the message has no kind" : "'" + name + "' is missing");
  }
}

template <typename Enum>
void expect_all_names() {
  using wire::enum_names;
  for (std::size_t i = 0; i < enum_names<Enum>.size(); ++i) {
    EXPECT_EQ(wire::from_json<Enum>(wire::to_json(static_cast<Enum>(i))), static_cast<Enum>(i));
  }
  EXPECT_THROW(wire::from_json<Enum>(wire::Json("other")), wire::Malformed);
  EXPECT_THROW(wire::from_json<Enum>(wire::Json(0)), wire::Malformed);
  EXPECT_ANY_THROW(wire::to_json(static_cast<Enum>(enum_names<Enum>.size())));
}

}  // namespace remote::test
