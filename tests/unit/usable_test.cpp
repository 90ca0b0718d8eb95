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
