#include "base/decimal.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace remote {
namespace {

// 10 to the power of `exponent`, which must be positive.
long double raise_ten(int exponent) {
  long double power = 10;
  long double result = 1;
  for (; exponent > 0; exponent /= 2) {
    result *= exponent % 2 == 1 ? power : 1;
    power *= power;
  }
  return result;
}

// Used instead of std::strtod(), which depends on the locale and needs 10 KB in the agent. The result is
// exact for up to 15 digits and small exponents, and otherwise within one unit in the last place.
double compute_decimal(std::string_view text) {
  const std::size_t exponent_at = std::min(text.find_first_of("eE"), text.size());
  constexpr std::uint64_t most_digits = 1'000'000'000'000'000'000;
  std::uint64_t digits = 0;
  int exponent = 0;
  bool is_fraction = false;
  for (const char c : text.substr(0, exponent_at)) {
    if (c == '.') {
      is_fraction = true;
    } else if (c != '-' && digits < most_digits) {
      digits = digits * 10 + static_cast<std::uint64_t>(c - '0');
      exponent -= is_fraction ? 1 : 0;
    } else if (c != '-' && !is_fraction) {
      ++exponent;
    }
  }
  if (exponent_at < text.size()) {
    constexpr int most_exponent = 9999;
    const bool is_negative = text.substr(exponent_at + 1).starts_with('-');
    int written = 0;
    for (const char c : text.substr(exponent_at + 1)) {
      written = c == '-' || c == '+' ? 0 : std::min(written * 10 + (c - '0'), most_exponent);
    }
    exponent += is_negative ? -written : written;
  }
  const long double factor = raise_ten(digits == 0 ? 0 : std::abs(exponent));
  const double sign = text.starts_with('-') ? -1 : 1;
  if (digits < std::uint64_t{1} << 53U &&
      std::abs(exponent) <= 22) {  // a double can represent both exactly, so this rounds only once
    const auto value = static_cast<double>(digits);
    return sign * (exponent < 0 ? value / static_cast<double>(factor) : value * static_cast<double>(factor));
  }
  const auto value = static_cast<long double>(digits);
  return sign * static_cast<double>(exponent < 0 ? value / factor : value * factor);
}

// Formats with this number of significant digits; `value` must be positive.
std::string format_digits(double value, int count) {
  const auto wide = static_cast<long double>(value);
  int exponent = 0;
  while (wide >= raise_ten(exponent + 1)) {
    ++exponent;
  }
  while (exponent <= 0 && wide * raise_ten(-exponent) < 1) {
    --exponent;
  }
  const int shift = count - 1 - exponent;
  const long double scaled = shift < 0 ? wide / raise_ten(-shift) : wide * raise_ten(shift);
  std::string digits = std::to_string(static_cast<std::uint64_t>(scaled + 0.5L));
  if (digits.size() > static_cast<std::size_t>(count)) {  // it was rounded up to the next power of ten
    ++exponent;
  }
  digits.erase(digits.find_last_not_of('0') + 1);
  if (exponent < -5 || exponent > 16) {
    digits.insert(1, digits.size() > 1 ? "." : "");
    return digits + (exponent < 0 ? "e-" : "e") + std::to_string(std::abs(exponent));
  }
  if (exponent < 0) {
    return "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  }
  const std::size_t whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) {
    return digits + std::string(whole - digits.size(), '0');
  }
  return digits.insert(whole, ".");
}

}  // namespace

std::string format_decimal(double value) {
  if (value == 0) {
    return "0";
  }
  const std::string sign = value < 0 ? "-" : "";
  const double size = std::abs(value);
  const std::string text = format_digits(size, 15);
  const bool is_enough = size > 1e-7 && size < 1e22 &&
                         compute_decimal(text) == size;  // the conversion is exact within these bounds
  return sign + (is_enough ? text : format_digits(size, 17));
}

std::optional<double> decimal_at(std::string_view text, std::size_t& length) {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const auto skip_digits = [&] {
    const std::size_t begin = at;
    at = std::min(text.find_first_not_of("0123456789", at), text.size());
    return at - begin;
  };
  std::size_t digits = skip_digits();
  if (text.substr(at).starts_with('.')) {
    ++at;
    digits += skip_digits();
  }
  if (digits == 0) {
    return std::nullopt;
  }
  length = at;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    at += at < text.size() && (text[at] == '+' || text[at] == '-') ? 1 : 0;
    length = skip_digits() > 0 ? at : length;
  }
  const double value = compute_decimal(text.substr(0, length));
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<double> parse_decimal(std::string_view text) {
  std::size_t length = 0;
  const auto value = decimal_at(text, length);
  return length == text.size() ? value : std::nullopt;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::size_t length = 0;
  const auto number = decimal_at(text, length);
  std::string_view unit = text.substr(std::min(length, text.size()));
  while (unit.starts_with(' ')) {
    unit.remove_prefix(1);
  }
  double bytes = number.value_or(-1);
  constexpr std::string_view prefixes = "KMGT";
  if (!unit.empty()) {
    const std::size_t power = prefixes.find(unit.front()) == std::string_view::npos
                                  ? std::string_view("kmgt").find(unit.front())
                                  : prefixes.find(unit.front());
    if (power != std::string_view::npos) {
      bytes *= static_cast<double>(std::uint64_t{1} << (10 * (power + 1)));
      unit.remove_prefix(1);
    }
  }
  const bool good = unit.empty() || unit == "B" || unit == "iB";
  if (!good || bytes < 0 || bytes > 1e18) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace remote
