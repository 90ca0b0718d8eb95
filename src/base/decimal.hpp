#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace remote {

// Decimal numbers such as "-2.5e3", whatever the program's locale. std::from_chars has none of them on a Mac.
// No "inf", no "nan", and none that a double cannot hold.

// The number that the text begins with, and how many characters it has.
std::optional<double> decimal_at(std::string_view text, std::size_t& length);
// A whole number, nothing before or after it.
std::optional<double> parse_decimal(std::string_view text);

// A finite number with 15 digits, or 17 if others need these to read it exactly: "0.1", "12", "-2.5e-7".
std::string format_decimal(double value);

// Bytes of "64G", "500 MiB", "1.5T" or a plain number of them, by powers of 1024; nullopt for another text.
std::optional<std::uint64_t> parse_size(std::string_view text);

}  // namespace remote
