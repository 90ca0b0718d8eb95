#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace remote::test {

// How long a test waits at most. Only what fails takes so long, on a slow machine, too.
inline constexpr std::chrono::seconds patience{120};

// Waits until `condition` holds; false if it does not within `patience`.
inline bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // between two looks
  }
  return true;
}

// The same for a test that cannot go on without it: fails the test and says what was waited for.
inline void until(const std::function<bool()>& condition, const std::string& what) {
  ASSERT_TRUE(eventually(condition)) << "waited too long: " << what;
}

}  // namespace remote::test
