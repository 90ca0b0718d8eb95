#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace remote {

// Decimal numbers such as "-2.5e3", whatever the program's locale. std::from_chars has none of them on a Mac.
// No "inf", no "nan", and none that a double cannot hold.

// The number that the text begins with, and how many characters it has.
std::optional<double> decimal_at(std::string_view text, std::size_t& length);
// A whole number, nothing before or after it.
std::optional<double> parse_decimal(std::string_view text);

}  // namespace remote
