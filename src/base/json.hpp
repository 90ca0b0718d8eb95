#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

// JSON as text and as files. JSON is UTF-8, but what servers and users say may be any bytes. A byte that is
// not UTF-8 becomes U+FFFD; dump() of nlohmann::json would throw.

namespace remote {

// The JSON text with characters that a terminal would obey, which JSON itself allows in a string, as escapes:
// DEL, U+0080 to U+009F, and those that change the direction of a line.
std::string escape_controls(std::string json);

// A value of nlohmann's json or ordered_json, indented by two spaces, with a newline at the end.
template <typename Json>
std::string dump_json(const Json& value) {
  return escape_controls(value.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

// The same on one line, without a newline at the end.
template <typename Json>
std::string dump_json_line(const Json& value) {
  return escape_controls(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// The value as JSON; null where there is none.
template <typename Value>
nlohmann::json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

// The object of a JSON file of this program, which may also have come with somebody's project: it is opened
// beneath `folder`. nullopt where there is no such file; null where it has more than so many bytes, is no
// JSON object, or its "version" is not this one. Throws Error for a file that cannot be read.
std::optional<nlohmann::ordered_json> read_own_json(const std::filesystem::path& folder,
                                                    const std::filesystem::path& name, int version,
                                                    std::uintmax_t most_bytes);

}  // namespace remote
