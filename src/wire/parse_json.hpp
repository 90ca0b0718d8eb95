#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "wire/value.hpp"

namespace remote::wire {

// A parsed JSON document. It owns the texts that its value refers to.
class JsonDocument {
 public:
  // nullopt if it is not JSON, or nested more deeply than max_json_depth.
  static std::optional<JsonDocument> parse(std::string_view text);
  const Value& value() const { return value_; }

 private:
  friend class JsonParser;
  std::deque<std::string> strings_;  // a deque, so that its strings do not move
  Value value_;
};

constexpr std::size_t max_json_depth = 64;

}  // namespace remote::wire
