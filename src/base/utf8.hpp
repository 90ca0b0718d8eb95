#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace remote {

// One character of a UTF-8 text. A byte that begins no well-formed character (cut short, overlong, a
// surrogate, beyond U+10FFFF) is a character of its own: length 1, valid false, code U+FFFD.
struct Utf8Char {
  char32_t code = 0xFFFD;
  std::size_t length = 1;
  bool valid = false;
};

// The character that begins at `at`, which must lie inside the text.
Utf8Char utf8_at(std::string_view text, std::size_t at);

// Where the first byte stands that is not UTF-8; nullopt when all of the text is.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

}  // namespace remote
