#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Determines which texts are allowed in a message. A server's texts may be printed on a terminal, so control
// characters are never allowed.

namespace remote::wire {

// A UTF-8 character. An invalid byte becomes U+FFFD with size 1.
struct Character {
  std::uint32_t code = 0xfffd;
  std::size_t size = 1;
};

// The character at the beginning of a text, which must not be empty.
Character first_character(std::string_view text);

// Whether it is well-formed UTF-8 without control characters (C0, DEL, C1), line and paragraph separators,
// and characters that change the text direction.
bool is_line(std::string_view text);

// Whether it consists of ASCII letters, digits and these marks. It may be empty.
bool is_word(std::string_view text, std::string_view marks);

// Whether it consists of ASCII letters, digits and "._-", and is not empty.
bool is_name(std::string_view text);

// Whether it is the id of a job or a launch: 32 lower-case hexadecimal digits.
bool is_id(std::string_view text);
// Whether it is a SHA-256: 64 hexadecimal digits.
bool is_digest(std::string_view text);

// Encodes the text as one word of a line: every byte except ASCII letters, digits and "._@-" becomes %XX; an
// empty text becomes "-".
std::string percent_encode(std::string_view text);
// nullopt if a %XX is invalid. "-" is kept.
std::optional<std::string> percent_decode(std::string_view word);

// Converts the text to such a line of at most `size` bytes: bytes that are not permitted become "\x1b" and
// the like.
std::string to_line(std::string_view text, std::size_t size = 200);

}  // namespace remote::wire
