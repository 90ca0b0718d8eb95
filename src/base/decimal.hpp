#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace remote {

// Decimal numbers such as "-2.5e3", independent of the locale. macOS lacks std::from_chars for floating-point
// numbers. "inf", "nan" and numbers that a double cannot represent are rejected.

// The number at the beginning of the text; `length` is set to its number of characters.
std::optional<double> decimal_at(std::string_view text, std::size_t& length);
// Parses a text that consists only of a number.
std::optional<double> parse_decimal(std::string_view text);

// Formats a finite number with 15 digits, or 17 if these are needed to read it back exactly: "0.1", "12",
// "-2.5e-7".
std::string format_decimal(double value);

// Parses a number of bytes: "64G", "500 MiB", "1.5T" or a plain number, in powers of 1024; nullopt for other
// text.
std::optional<std::uint64_t> parse_size(std::string_view text);

}  // namespace remote
