#include "wire/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

#include "base/format.hpp"

namespace remote::wire {
namespace {

bool is_hexadecimal(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// The length of the character at the beginning of `text`; 0 if the character is not permitted.
std::size_t length_of_allowed(std::string_view text) {
  const auto [code, size] = first_character(text);
  const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
                          code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
                          (code >= 0x2066 && code <= 0x2069);
  const bool is_broken = code == 0xfffd && size == 1;
  return is_control || is_broken ? 0 : size;
}

}  // namespace

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) {
    return {first, 1};
  }
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  constexpr std::array<unsigned, 5> masks{0, 0, 0x1f, 0x0f, 0x07};
  constexpr std::array<unsigned, 5> least{0, 0, 0x80, 0x800, 0x10000};
  unsigned code = first & masks[size];
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) {
      return {};
    }
    code = code << 6U | (byte(i) & 0x3fU);
  }
  const bool is_character = first >= 0xc2 && first <= 0xf4 && code >= least[size] && code <= 0x10ffff &&
                            (code < 0xd800 || code > 0xdfff);
  return is_character ? Character{code, size} : Character{};
}

bool is_line(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = length_of_allowed(text);
    if (length == 0) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

bool is_word(std::string_view text, std::string_view marks) {
  return std::ranges::all_of(text, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           marks.find(c) != std::string_view::npos;
  });
}

bool is_name(std::string_view text) {
  return !text.empty() && is_word(text, "._-");
}

bool is_id(std::string_view text) {
  return text.size() == 32 && is_hexadecimal(text);
}

bool is_digest(std::string_view text) {
  return text.size() == 64 && is_hexadecimal(text);
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (is_word(std::string_view(&c, 1), "._@-")) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', digits[byte >> 4U], digits[byte & 15U]};
    }
  }
  return encoded.empty() ? "-" : encoded;
}

std::optional<std::string> percent_decode(std::string_view word) {
  std::string decoded;
  for (std::size_t i = 0; i < word.size(); ++i) {
    auto byte = static_cast<unsigned char>(word[i]);
    if (byte == '%') {
      const std::string_view digits = word.substr(i + 1, 2);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
      if (error != std::errc() || digits.size() != 2 || end != digits.data() + 2) {
        return std::nullopt;
      }
      i += 2;
    }
    decoded += static_cast<char>(byte);
  }
  return decoded;
}

std::string to_line(std::string_view text, std::size_t size) {
  std::string line;
  while (!text.empty()) {
    const std::size_t length = length_of_allowed(text);
    const std::string next = length == 0 ? text::format("\\x{:02x}", static_cast<unsigned char>(text.front()))
                                         : std::string(text.substr(0, length));
    if (line.size() + next.size() > size) {
      break;
    }
    line += next;
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return line;
}

}  // namespace remote::wire
