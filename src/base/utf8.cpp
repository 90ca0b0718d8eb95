#include "base/utf8.hpp"

namespace remote {

Utf8Char utf8_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) {
    return {first, 1, true};
  }
  std::size_t length = 0;
  char32_t code = 0;
  char32_t smallest = 0;  // a code below it has a shorter form: overlong
  if ((first & 0xE0U) == 0xC0U) {
    length = 2;
    code = first & 0x1FU;
    smallest = 0x80;
  } else if ((first & 0xF0U) == 0xE0U) {
    length = 3;
    code = first & 0x0FU;
    smallest = 0x800;
  } else if ((first & 0xF8U) == 0xF0U) {
    length = 4;
    code = first & 0x07U;
    smallest = 0x10000;
  } else {
    return {};
  }
  if (text.size() - at < length) {
    return {};
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) {
      return {};
    }
    code = (code << 6U) | (byte(at + i) & 0x3FU);
  }
  if (code < smallest || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
    return {};
  }
  return {code, length, true};
}

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = utf8_at(text, at);
    if (!c.valid) {
      return at;
    }
    at += c.length;
  }
  return std::nullopt;
}

}  // namespace remote
