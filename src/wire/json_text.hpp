#pragma once

#include <string>

#include "wire/types.hpp"

namespace remote::wire {

std::string to_json_text(const Type& type, const void* value, bool keeps_bytes = false);

// JSON on one line, in ASCII. Bytes that are not UTF-8 become U+FFFD.
template <typename T>
std::string to_json_text(const T& value) {
  return to_json_text(TypeOf<T, Direction::write>::type, &value);
}

// Bytes that are not UTF-8 become U+DC80 to U+DCFF, as in Python's "surrogateescape". read_json() restores
// them.
template <typename T>
std::string to_json_bytes(const T& value) {
  return to_json_text(TypeOf<T, Direction::write>::type, &value, true);
}

}  // namespace remote::wire
