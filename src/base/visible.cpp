// Characters of UTF-8 texts, and making texts safe for a terminal.

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>
#include <unistr.h>

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
  if (text.size() <= longest && std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; })) {
    return std::string(text);  // this is the case for almost all cells of a table
  }
  std::string shown;
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    if (count == longest) {
      return shown + "…";
    }
    const Utf8Char c = utf8_at(text, at);
    const std::string_view bytes = text.substr(at, c.length);
    if (c.code >= ' ' && c.code < 0x7F && c.valid) {
      shown += text[at];
    } else if (!c.valid) {
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

Utf8Char utf8_at(std::string_view text, std::size_t at) {
  if (const auto byte = static_cast<unsigned char>(text[at]); byte < 0x80) {
    return {byte, 1, true};  // a list of ten thousand lines has a million of these
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  ucs4_t code = 0;
  const int length = ::u8_mbtoucr(&code, bytes + at, text.size() - at);
  return length > 0 ? Utf8Char{code, static_cast<std::size_t>(length), true} : Utf8Char{};
}

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  const std::uint8_t* bad = ::u8_check(bytes, text.size());
  return bad == nullptr ? std::nullopt : std::optional(static_cast<std::size_t>(bad - bytes));
}

std::string visible_line(std::string_view text, std::size_t longest) {
  return visible(text, longest, "");
}

std::string visible_text(std::string_view text, std::size_t longest) {
  return visible(text, longest, "\n\t");
}

}  // namespace remote
