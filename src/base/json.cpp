#include "base/json.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/beneath.hpp"
#include "base/strings.hpp"

namespace remote {

std::string escape_controls(std::string json) {
  const auto may_begin_one = [](char c) { return c == '\x7f' || c == '\xc2' || c == '\xe2'; };
  if (std::ranges::none_of(json, may_begin_one)) {
    return json;
  }
  std::string escaped;
  for (std::size_t at = 0; at < json.size();) {
    const Utf8Char c = utf8_at(json, at);
    const std::string_view bytes = std::string_view(json).substr(at, c.length);
    if (c.valid && c.code >= 0x7F && visible_line(bytes) != bytes) {
      escaped += fmt::format("\\u{:04x}", static_cast<unsigned>(c.code));
    } else {
      escaped += bytes;
    }
    at += c.length;
  }
  return escaped;
}

std::optional<nlohmann::ordered_json> read_own_json(const std::filesystem::path& folder,
                                                    const std::filesystem::path& name, int version,
                                                    std::uintmax_t most_bytes) {
  using Json = nlohmann::ordered_json;
  const UniqueFd fd = open_beneath(folder, name);
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) {
    return std::nullopt;
  }
  if (static_cast<std::uintmax_t>(info.st_size) > most_bytes) {
    return Json();
  }
  Json json = Json::parse(read_rest(fd, folder / name, most_bytes), nullptr, false);
  const auto found = json.find("version");
  return json.is_object() && found != json.end() && *found == version ? std::move(json) : Json();
}

}  // namespace remote
