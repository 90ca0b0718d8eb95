#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace remote::test {

// The maximum time a test waits. Only failing tests take this long, even on a slow machine.
inline constexpr std::chrono::seconds patience{120};

// Waits until `condition` holds; false if it does not within `patience`.
inline bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // poll interval
  }
  return true;
}

// For tests that cannot continue otherwise: on a timeout, fails the test and prints what it waited for.
inline void until(const std::function<bool()>& condition, const std::string& what) {
  ASSERT_TRUE(eventually(condition)) << "waited too long: " << what;
}

}  // namespace remote::test
