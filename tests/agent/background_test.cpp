#include "agent/host/background.hpp"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "agent/waiting.hpp"

namespace remote::agent {
namespace {

TEST(Background, HasTheResultOfItsWork) {
  std::atomic<bool> may_end = false;
  Background<std::string> first([&] {
    EXPECT_TRUE(test::eventually([&] { return may_end.load(); }));
    return std::string("first");
  });
  Background<std::string> second([&] {
    may_end = true;
    return std::string("second");
  });
  EXPECT_EQ(first.get(), "first");
  EXPECT_EQ(second.get(), "second");
}

TEST(Background, ThrowsWhatItsWorkThrows) {
  Background<int> work([]() -> int { throw std::runtime_error("no"); });
  EXPECT_THROW(work.get(), std::runtime_error);
}

TEST(Background, DoesItsWorkOnce) {
  int runs = 0;
  BackgroundWork work([&] { ++runs; });
  work.wait();
  work.wait();
  EXPECT_EQ(runs, 1);
}

TEST(Background, WaitsForAThreadWhoseResultIsNotNeeded) {
  bool is_done = false;
  {
    const BackgroundWork work([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // outlasts the code that starts it
      is_done = true;
    });
  }
  EXPECT_TRUE(is_done);
}

}  // namespace
}  // namespace remote::agent
