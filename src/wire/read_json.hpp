#pragma once

#include <optional>
#include <string_view>

#include "wire/malformed.hpp"
#include "wire/parse_json.hpp"
#include "wire/read.hpp"

// Parses structs from the text that to_json_text() writes (wire/json_text.hpp).

namespace remote::wire {

// nullopt if the text is not JSON. Throws Malformed if it is JSON for something else.
template <typename Value>
std::optional<Value> read_json(std::string_view text) {
  const auto document = JsonDocument::parse(text);
  if (!document) {
    return std::nullopt;
  }
  Value value;
  read(document->value(), TypeOf<Value, Direction::read>::type, &value, {}, "");
  return value;
}

// Returns nullopt also if it is JSON for something else.
template <typename Value>
std::optional<Value> try_read_json(std::string_view text) {
  try {
    return read_json<Value>(text);
  } catch (const Malformed&) {
    return std::nullopt;
  }
}

}  // namespace remote::wire
