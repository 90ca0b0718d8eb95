#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace remote::wire {

// Limits for messages from other machines.
constexpr std::size_t max_depth = 16;
constexpr std::size_t max_values = 1 << 18;

// An arbitrary value from another machine. It refers to the bytes that it was parsed from.
struct Value {
  enum class Kind : std::uint8_t { null, boolean, integer, unsigned_integer, real, string, list, object };

  Kind kind = Kind::null;
  bool boolean = false;
  std::uint64_t number = 0;  // in two's complement if negative; for a double, its bits
  std::string_view string{};
  std::string_view name{};      // the name of the field in its object
  std::vector<Value> values{};  // the values of a list or an object

  bool is(Kind other) const { return kind == other; }
  bool is_integer() const { return kind == Kind::integer || kind == Kind::unsigned_integer; }
  bool is_number() const { return is_integer() || kind == Kind::real; }
  // Only for a number.
  double to_double() const {
    return kind == Kind::real      ? std::bit_cast<double>(number)
           : kind == Kind::integer ? static_cast<double>(static_cast<std::int64_t>(number))
                                   : static_cast<double>(number);
  }
  // Returns nullptr if this is not an object or has no such field.
  const Value* find(std::string_view field) const {
    for (const Value& each : values) {
      if (kind == Kind::object && each.name == field) {
        return &each;
      }
    }
    return nullptr;
  }
};

}  // namespace remote::wire
