#include "base/ranges.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include <fmt/format.h>

#include "base/strings.hpp"

namespace remote {

std::string ranges(std::vector<int> numbers) {
  constexpr std::size_t most_pieces = 5;
  std::ranges::sort(numbers);
  std::vector<std::string> pieces;
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) {
      ++end;
    }
    if (pieces.size() == most_pieces) {
      return fmt::format("{} and {} more", join(pieces, ", "), numbers.size() - begin);
    }
    pieces.push_back(end - begin == 1 ? std::to_string(numbers[begin])
                                      : fmt::format("{}-{}", numbers[begin], numbers[end - 1]));
    begin = end;
  }
  return join(pieces, ", ");
}

std::optional<std::vector<int>> numbers_of(std::string_view text, int highest) {
  const std::size_t dash = text.find('-');
  const auto first = parse_number<int>(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_number<int>(text.substr(dash + 1));
  if (!first || !last || *first < 0 || *first > *last || *last > highest) {
    return std::nullopt;
  }
  std::vector<int> numbers(static_cast<std::size_t>(*last - *first) + 1);
  std::iota(numbers.begin(), numbers.end(), *first);
  return numbers;
}

}  // namespace remote
