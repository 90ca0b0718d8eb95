#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace remote {

// `digits` lower-case hexadecimal digits from the system's random source; fit for ids and tokens.
std::string random_hex(std::size_t digits);
// A number in [low, high].
std::uint32_t random_between(std::uint32_t low, std::uint32_t high);

}  // namespace remote
