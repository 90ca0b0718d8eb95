#include "rules/usable.hpp"

#include <gmock/gmock.h>

namespace remote::rules {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Gpu make_gpu(GpuVendor vendor, int index, bool lost = false) {
  Gpu gpu;
  gpu.vendor = vendor;
  gpu.index = index;
  gpu.lost = lost;
  return gpu;
}

ServerFacts make_machine(int threads, int usable, std::optional<double> limit = std::nullopt) {
  ServerFacts facts;
  facts.threads = threads;
  facts.usable_threads = usable;
  facts.cpu_limit = limit;
  return facts;
}

TEST(Usable, ProcessorsAreThoseOfTheQuotaRoundedUp) {
  struct Case {
    ServerFacts facts;
    int count;
    int all;
    CpuBound bound;
  };
  const std::vector<Case> cases = {{make_machine(64, 64), 64, 64, CpuBound::none},
                                   {make_machine(64, 64, 2.0), 2, 64, CpuBound::quota},
                                   {make_machine(64, 64, 1.5), 2, 64, CpuBound::quota},
                                   {make_machine(64, 64, 0.1), 1, 64, CpuBound::quota},
                                   {make_machine(64, 64, 0.0), 1, 64, CpuBound::quota},
                                   {make_machine(64, 64, 64.0), 64, 64, CpuBound::none},
                                   {make_machine(64, 64, 63.5), 64, 64, CpuBound::none},
                                   {make_machine(64, 4), 4, 64, CpuBound::affinity},
                                   {make_machine(64, 4, 8.0), 4, 64, CpuBound::affinity},
                                   {make_machine(64, 4, 2.0), 2, 64, CpuBound::quota},
                                   {make_machine(0, 0), 1, 1, CpuBound::none}};
  for (const Case& each : cases) {
    const UsableCpus usable = count_cpus(each.facts);
    EXPECT_EQ(usable.count, each.count) << each.facts.cpu_limit.value_or(-1);
    EXPECT_EQ(usable.all, each.all);
    EXPECT_EQ(usable.bound, each.bound) << each.facts.cpu_limit.value_or(-1);
  }
}

TEST(Usable, MemoryIsThatOfTheControlGroup) {
  ServerFacts facts;
  facts.memory = 1000;
  facts.memory_available = 800;
  EXPECT_FALSE(count_memory(facts).is_limited);
  facts.memory_limit = 1000;
  EXPECT_FALSE(count_memory(facts).is_limited);
  facts.memory_limit = 900;
  EXPECT_EQ(count_memory(facts).total, 900U);
  EXPECT_EQ(count_memory(facts).available, 800U);
  EXPECT_TRUE(count_memory(facts).is_limited);
  facts.memory_limit = 200;
  EXPECT_EQ(count_memory(facts).available, 200U);
}

TEST(Usable, GpusOfEachVendorCount) {
  EXPECT_THAT(count_gpus({}).indices, IsEmpty());
  for (const GpuVendor vendor : {GpuVendor::nvidia, GpuVendor::amd, GpuVendor::intel}) {
    const UsableGpus usable = count_gpus({.gpus = {make_gpu(vendor, 0), make_gpu(vendor, 2)}});
    EXPECT_EQ(usable.vendor, vendor);
    EXPECT_THAT(usable.indices, ElementsAre(0, 2));
  }
}

TEST(Usable, OfSeveralVendorsTheFirstCounts) {
  const UsableGpus usable = count_gpus(
      {.gpus = {make_gpu(GpuVendor::intel, 0), make_gpu(GpuVendor::amd, 0), make_gpu(GpuVendor::amd, 1)}});
  EXPECT_EQ(usable.vendor, GpuVendor::amd);
  EXPECT_EQ(usable.count(), 2) << "a rank cannot use both";
}

TEST(Usable, LostGpusDoNotCount) {
  const UsableGpus usable =
      count_gpus({.gpus = {make_gpu(GpuVendor::nvidia, 0, true), make_gpu(GpuVendor::nvidia, 1),
                           make_gpu(GpuVendor::amd, 0)}});
  EXPECT_THAT(usable.indices, ElementsAre(1));
  EXPECT_EQ(usable.lost, 1);
  const UsableGpus none =
      count_gpus({.gpus = {make_gpu(GpuVendor::nvidia, 0, true), make_gpu(GpuVendor::amd, 0)}});
  EXPECT_EQ(none.count(), 0) << "the other vendor's are not what the server is for";
  EXPECT_EQ(none.lost, 1);
}

}  // namespace
}  // namespace remote::rules
