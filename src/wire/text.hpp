#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Which texts may be in a message. A server's texts end up on a terminal, so control characters never pass.

namespace remote::wire {

// A UTF-8 character. An invalid byte becomes U+FFFD, of size 1.
struct Character {
  std::uint32_t code = 0xfffd;
  std::size_t size = 1;
};

// The character at the beginning of a text that is not empty.
Character first_character(std::string_view text);

// Whether it is well-formed UTF-8 without control characters (C0, DEL, C1), line and paragraph separators,
// and characters that change the direction of the text.
bool is_line(std::string_view text);

// Whether it consists of ASCII letters, digits and these marks. It may be empty.
bool is_word(std::string_view text, std::string_view marks);

// Whether it consists of ASCII letters, digits and "._-", and is not empty.
bool is_name(std::string_view text);

// Whether it is the id of a job or a launch: 32 lower-case hexadecimal digits.
bool is_id(std::string_view text);
// 64 hexadecimal digits: a SHA-256.
bool is_digest(std::string_view text);

// The text as one word of a line: every byte but ASCII letters, digits and "._@-" becomes %XX; "-" if it is
// empty.
std::string percent_encode(std::string_view text);
// nullopt if a %XX is wrong. "-" stays as it is.
std::optional<std::string> percent_decode(std::string_view word);

// The text as such a line of at most `size` bytes: bytes that are not allowed become "\x1b" and the like.
std::string to_line(std::string_view text, std::size_t size = 200);

}  // namespace remote::wire
