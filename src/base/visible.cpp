#include "base/visible.hpp"

#include <fmt/format.h>

#include "base/strings.hpp"

namespace remote {
namespace {

bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0);
}

bool changes_direction(char32_t code) {
  return (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

std::string visible(std::string_view text, std::size_t longest, std::string_view kept) {
  std::string shown;
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    if (count == longest) {
      return shown + "…";
    }
    const Utf8Char c = utf8_at(text, at);
    const std::string_view bytes = text.substr(at, c.length);
    if (!c.valid) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(bytes[0]));
    } else if (kept.find(bytes) != std::string_view::npos ||
               (!is_control(c.code) && !changes_direction(c.code))) {
      shown += bytes;
    } else if (c.code == '\n' || c.code == '\t' || c.code == '\r') {
      shown += c.code == '\n' ? "\\n" : c.code == '\t' ? "\\t" : "\\r";
    } else if (is_control(c.code)) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned>(c.code));
    } else {
      shown += fmt::format("\\u{:04x}", static_cast<unsigned>(c.code));
    }
    at += c.length;
  }
  return shown;
}

}  // namespace

std::string visible_line(std::string_view text, std::size_t longest) {
  return visible(text, longest, "");
}

std::string visible_text(std::string_view text, std::size_t longest) {
  return visible(text, longest, "\n\t");
}

}  // namespace remote
