#include "cli/show/gpus.hpp"

#include <gtest/gtest.h>
#include <remote/gpu.hpp>

namespace remote {
namespace {

TEST(Gpus, AreInUseAlsoWhereNoProcessIsSeen) {
  Gpu gpu{.memory_total = 80ULL << 30U, .memory_used = 600ULL << 20U, .utilisation = 0.0};
  EXPECT_EQ(cli::in_use(gpu), false) << "a driver takes as much";
  gpu.utilisation = 100;  // percent
  EXPECT_EQ(cli::in_use(gpu), true);
  gpu.utilisation.reset();
  gpu.memory_used = 31ULL << 30U;
  EXPECT_EQ(cli::in_use(gpu), true);
  GpuFacts facts;
  facts.gpus = {gpu, gpu};
  EXPECT_EQ(cli::in_short(facts), "2 of 2, 62.0 GiB of 160 GiB");
}

// Integrated GPUs, or broken ones.
TEST(Gpus, OfWhichNothingIsKnownAreNotCalledFree) {
  GpuFacts facts;
  facts.gpus = {Gpu{}};
  EXPECT_EQ(cli::in_use(facts.gpus[0]), std::nullopt);
  EXPECT_EQ(cli::in_short(facts), "0 of 1");
  facts.gpus[0].processes.emplace_back().pid = 900;
  EXPECT_EQ(cli::in_short(facts), "1 of 1");
}

TEST(Gpus, NameTheReasonsOfSlowClocks) {
  EXPECT_TRUE(is_fault(ClockLimit::hardware_thermal));
  EXPECT_FALSE(is_fault(ClockLimit::power_cap)) << "normal under full load";
  EXPECT_EQ(name_of(ClockLimit::hardware_power_brake), "hw_power_brake_slowdown");
  EXPECT_EQ(name_of(ClockLimit::other), "other");
}

}  // namespace
}  // namespace remote
