#include "base/json.hpp"

#include <system_error>

#include "base/files.hpp"

namespace remote {

std::optional<nlohmann::ordered_json> read_own_json(const std::filesystem::path& file, int version,
                                                    std::uintmax_t most_bytes) {
  using Json = nlohmann::ordered_json;
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(file, none);
  if (none) {
    return std::nullopt;
  }
  const auto text = size > most_bytes ? std::nullopt : read_file_if_there(file);
  Json json = text ? Json::parse(*text, nullptr, false) : Json();
  const auto found = json.find("version");
  return json.is_object() && found != json.end() && *found == version ? std::move(json) : Json();
}

}  // namespace remote
