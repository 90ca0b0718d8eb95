#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

// The one way by which JSON becomes text. JSON is UTF-8, but what servers and users say may be any bytes. A
// byte that is not UTF-8 becomes U+FFFD; dump() of nlohmann::json would throw.

namespace remote {

// Indented by two spaces, with a newline at the end.
std::string dump_json(const nlohmann::json& value);
std::string dump_json(const nlohmann::ordered_json& value);

}  // namespace remote
