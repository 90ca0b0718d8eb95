#include "ui/text_width.hpp"

#include <algorithm>

#include <uniwidth.h>

#include "base/strings.hpp"

namespace remote::ui {
namespace {

std::size_t width_of(char32_t code) {
  return static_cast<std::size_t>(std::max(0, ::uc_width(code, "UTF-8")));  // -1: a control character
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
