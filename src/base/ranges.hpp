#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace remote {

// Numbers in order, for people: "45-48, 50". Of more than five pieces the first, and how many more numbers
// there are.
std::string ranges(std::vector<int> numbers);

// The numbers of "3" or "1-3", none above `highest`; nullopt where the text is neither.
std::optional<std::vector<int>> numbers_of(std::string_view text, int highest);

}  // namespace remote
