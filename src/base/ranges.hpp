#pragma once

#include <string>
#include <vector>

namespace remote {

// Numbers in order, for people: "45-48, 50". Of more than five pieces the first, and how many more numbers
// there are.
std::string ranges(std::vector<int> numbers);

}  // namespace remote
