#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "wire/types.hpp"

// The types of fields.hpp as JSON. The agent only writes text (json_text.hpp), because nlohmann_json is
// large.

namespace remote::wire {

using Json = nlohmann::json;

Json to_json(const Type& type, const void* value);

// Reads `json` into `value`. `path` is the name of the value in errors. Throws Malformed.
void read_json(const Json& json, const Type& type, void* value, const Limits& limits,
               const std::string& path);

template <typename T>
Json to_json(const T& value) {
  return to_json(TypeOf<T, Direction::write>::type, &value);
}

template <typename T>
void read_json(const Json& json, T& value, const Limits& limits, const std::string& path) {
  read_json(json, TypeOf<T, Direction::read>::type, &value, limits, path);
}

template <typename T>
T from_json(const Json& json) {
  T value;
  read_json(json, value, {}, "");
  return value;
}

}  // namespace remote::wire
