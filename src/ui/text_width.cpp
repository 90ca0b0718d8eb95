#include "ui/text_width.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "ui/width_tables.hpp"

namespace remote::ui {
namespace {

template <std::size_t Size>
bool contains(const CodeRange (&ranges)[Size], char32_t code) {
  const auto* after = std::upper_bound(std::begin(ranges), std::end(ranges), code,
                                       [](char32_t c, const CodeRange& range) { return c < range.first; });
  return after != std::begin(ranges) && code <= std::prev(after)->last;
}

std::size_t width_of(char32_t code) {
  if (code < 0x20 || (code >= 0x7F && code < 0xA0)) {
    return 0;
  }
  if (code < 0x300) {
    return 1;
  }
  if (contains(zero_width, code)) {
    return 0;
  }
  return contains(double_width, code) ? 2 : 1;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = utf8_at(text, at);
    width += width_of(c.code);
    at += c.length;
  }
  return width;
}

std::string shorten(std::string_view text, std::size_t width) {
  std::size_t used = 0;
  std::size_t cut = 0;  // end of what fits beside the "…"
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = utf8_at(text, at);
    used += width_of(c.code);
    if (used > width) {
      return width == 0 ? std::string() : std::string(text.substr(0, cut)) + "…";
    }
    at += c.length;
    if (used + 1 <= width) {
      cut = at;
    }
  }
  return std::string(text);
}

}  // namespace remote::ui
