#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace remote::simulation {

// Gives the same numbers for the same seed on every platform, because the standard distributions differ
// between libraries.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  // In [0, 1).
  double chance() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * chance(); }
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(chance() * static_cast<double>(end)); }
  template <typename Values>
  const auto& choose(const Values& values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(below(values.size())));
  }
  template <typename Value>
  Value choose(std::initializer_list<Value> values) {
    return *(values.begin() + below(values.size()));
  }
  template <typename Value>
  void shuffle(std::vector<Value>& values) {
    for (std::size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[below(i)]);
    }
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace remote::simulation
