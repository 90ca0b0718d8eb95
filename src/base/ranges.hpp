#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace remote {

// Formats numbers for display: "45-48, 50". If there are more than five parts, only the first ones, and how
// many numbers follow.
std::string ranges(std::vector<int> numbers);

// Parses "3" or "1-3", up to `highest`; nullopt for other text.
std::optional<std::vector<int>> numbers_of(std::string_view text, int highest);

}  // namespace remote
