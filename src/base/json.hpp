#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

// JSON as text and in files. JSON is UTF-8, but texts of servers and users may contain any bytes. A byte that
// is not UTF-8 becomes U+FFFD, while dump() of nlohmann::json would throw.

namespace remote {

// Escapes characters that a terminal would interpret and that JSON permits in strings: DEL, U+0080 to U+009F,
// and those that change the text direction.
std::string escape_controls(std::string json);

// Formats a json or ordered_json of nlohmann, indented by two spaces, with a newline at the end.
template <typename Json>
std::string dump_json(const Json& value) {
  return escape_controls(value.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

// Like dump_json(), on a single line, without a newline at the end.
template <typename Json>
std::string dump_json_line(const Json& value) {
  return escape_controls(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// The value as JSON; null if there is none.
template <typename Value>
nlohmann::json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

// Reads the object in a JSON file of this program. The file is opened beneath `folder`, because it may have
// been copied with another user's project. nullopt if the file does not exist; null if it has more than
// `most_bytes`, is not a JSON object, or has another "version". Throws Error if it cannot be read.
std::optional<nlohmann::ordered_json> read_own_json(const std::filesystem::path& folder,
                                                    const std::filesystem::path& name, int version,
                                                    std::uintmax_t most_bytes);

}  // namespace remote
