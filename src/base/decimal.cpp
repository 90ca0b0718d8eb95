#include "base/decimal.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <string>

#include <locale.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

namespace remote {

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
  // std::strtod reads "2.5" as 2 where the program has chosen another language.
  static const locale_t plain = ::newlocale(LC_ALL_MASK, "C", nullptr);
  const double value = ::strtod_l(std::string(text.substr(0, length)).c_str(), nullptr, plain);
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
    const std::size_t power =
        prefixes.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit.front()))));
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
