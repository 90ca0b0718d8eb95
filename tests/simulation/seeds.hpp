#pragma once

#include <cstdint>
#include <cstdlib>

namespace remote::simulation {

// The number of seeds: SIMULATION_SEEDS, or 200. `tests/run --part simulation` uses more.
inline std::uint64_t count_seeds() {
  const char* text = std::getenv("SIMULATION_SEEDS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 200;
}

}  // namespace remote::simulation
