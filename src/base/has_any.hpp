#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace remote {

inline bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(
      parts, [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

}  // namespace remote
