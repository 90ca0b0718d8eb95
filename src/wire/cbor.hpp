#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/types.hpp"
#include "wire/value.hpp"

// The types of fields.hpp as CBOR (RFC 8949).

namespace remote::wire {

using Bytes = std::vector<std::uint8_t>;

// Parses `bytes` as a single value, which refers to them. Throws Malformed for invalid input, for encodings
// that encode() never produces, and for more than max_depth levels or max_values values.
Value parse_cbor(std::span<const std::uint8_t> bytes);

Bytes encode(const Type& type, const void* value);
void decode(std::span<const std::uint8_t> bytes, const Type& type, void* value);

template <typename T>
Bytes encode(const T& value) {
  return encode(TypeOf<T, Direction::write>::type, &value);
}

// Throws Malformed.
template <typename T>
T decode(std::span<const std::uint8_t> bytes) {
  T value;
  decode(bytes, TypeOf<T, Direction::read>::type, &value);
  return value;
}

}  // namespace remote::wire
