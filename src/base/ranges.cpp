#include "base/ranges.hpp"

#include <algorithm>
#include <cstddef>

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

}  // namespace remote
