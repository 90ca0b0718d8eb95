#pragma once

#include <string>

// The one way by which JSON becomes text. JSON is UTF-8, but what servers and users say may be any bytes. A
// byte that is not UTF-8 becomes U+FFFD; dump() of nlohmann::json would throw.

namespace remote {

// A value of nlohmann's json or ordered_json, indented by two spaces, with a newline at the end.
template <typename Json>
std::string dump_json(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// The same on one line, without a newline at the end.
template <typename Json>
std::string dump_json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace remote
