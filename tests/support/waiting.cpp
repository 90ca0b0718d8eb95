#include "support/waiting.hpp"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace remote::test {

bool eventually(const std::function<bool()>& condition, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

void until(const std::function<bool()>& condition, const std::string& what) {
  ASSERT_TRUE(eventually(condition)) << "waited too long: " << what;
}

}  // namespace remote::test
