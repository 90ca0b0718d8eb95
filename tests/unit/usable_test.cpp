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

TEST(Usable, TwoNamesOfOneMachineShareGpusUnlessTheyAreSplit) {
  const auto make = [](const std::string& machine, const std::string& uuid) {
    ServerFacts facts;
    facts.machine = machine;
    facts.gpus.gpus = {make_gpu(GpuVendor::nvidia, 0), make_gpu(GpuVendor::nvidia, 1)};
    facts.gpus.gpus[0].uuid = uuid;
    return facts;
  };
  const ServerFacts one = make("1", "GPU-1");
  EXPECT_TRUE(share_gpus(one, {}, make("1", "GPU-1"), {}));
  EXPECT_TRUE(share_gpus(one, {0, 1}, one, {1}));
  EXPECT_TRUE(share_gpus(one, {0}, one, {}));
  EXPECT_FALSE(share_gpus(one, {0}, one, {1}));
  EXPECT_FALSE(share_gpus(one, {}, make("2", "GPU-1"), {}));
  EXPECT_FALSE(share_gpus(one, {}, make("1", "GPU-2"), {})) << "containers of one machine";
  for (const char* machine : {"", "0"}) {
    EXPECT_FALSE(share_gpus(make(machine, "GPU-1"), {}, make(machine, "GPU-1"), {})) << "unknown machines";
  }
  EXPECT_FALSE(share_gpus(make("1", ""), {}, make("1", ""), {})) << "unknown GPUs";
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

using Variables = std::vector<std::pair<std::string, std::string>>;

GpuFacts make_gpus(int count, GpuVendor vendor = GpuVendor::nvidia) {
  GpuFacts facts;
  for (int i = 0; i < count; ++i) {
    facts.gpus.push_back(make_gpu(vendor, i));
    facts.gpus.back().uuid = "GPU-" + std::to_string(i) + "a5b";
  }
  return facts;
}

TEST(Usable, OnlyVisibleGpusCount) {
  struct Case {
    const char* value;
    std::vector<int> indices;
    int unknown = 0;
  };
  const std::vector<Case> cases = {{"2,3", {2, 3}},
                                   {" 2 , 0", {0, 2}},
                                   {"0,9,1", {0}},  // GPUs after an unknown one are not visible
                                   {"0,-1,1", {0}},
                                   {"", {}},
                                   {"-1", {}},
                                   {"NoDevFiles", {}},
                                   {"1,1", {1}},
                                   {"99999999999999999999", {}},
                                   {"GPU-2a5b,GPU-0", {0, 2}},
                                   {"GPU-8", {}},
                                   {"MIG-4f1c,MIG-77", {}, 2}};
  for (const Case& each : cases) {
    const UsableGpus usable = count_gpus(make_gpus(4), {{"CUDA_VISIBLE_DEVICES", each.value}});
    EXPECT_THAT(usable.indices, testing::UnorderedElementsAreArray(each.indices)) << each.value;
    EXPECT_EQ(usable.unknown, each.unknown) << each.value;
    EXPECT_THAT(usable.there, ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(usable.hidden_by, HiddenBy::launch);
    EXPECT_EQ(usable.variable, "CUDA_VISIBLE_DEVICES");
  }
  EXPECT_EQ(count_gpus(make_gpus(2), {{"CUDA_VISIBLE_DEVICES", "0,1"}}).hidden_by, HiddenBy::nobody);
  EXPECT_EQ(count_gpus({}, {{"CUDA_VISIBLE_DEVICES", "0,1"}}).count(), 2) << "no program lists them";
  EXPECT_EQ(count_gpus({.tools = {GpuTool()}}, {{"CUDA_VISIBLE_DEVICES", "0,1"}}).count(), 0);
}

TEST(Usable, ThePrologueSetsVariablesAfterTheLaunchAndTheLaunchAfterTheLogin) {
  GpuFacts facts = make_gpus(4);
  const Variables given = {{"CUDA_VISIBLE_DEVICES", "0"}, {"CUDA_VISIBLE_DEVICES", "2,3"}};
  facts.visible = {{"CUDA_VISIBLE_DEVICES", "1"}};
  EXPECT_THAT(count_gpus(facts).indices, ElementsAre(1));
  EXPECT_EQ(count_gpus(facts).hidden_by, HiddenBy::login);
  EXPECT_THAT(count_gpus(facts, given).indices, ElementsAre(2, 3));
  EXPECT_EQ(count_gpus(facts, given).hidden_by, HiddenBy::launch);
  facts.visible = {{"CUDA_VISIBLE_DEVICES", "1", true}};
  EXPECT_THAT(count_gpus(facts, given).indices, ElementsAre(1));
  EXPECT_EQ(count_gpus(facts, given).hidden_by, HiddenBy::prologue);
}

TEST(Usable, EachVendorHasItsVariables) {
  const auto count = [](GpuVendor vendor, const Variables& given) {
    return count_gpus(make_gpus(4, vendor), given).indices;
  };
  EXPECT_THAT(count(GpuVendor::nvidia, {{"HIP_VISIBLE_DEVICES", "1"}}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(count(GpuVendor::amd, {{"HIP_VISIBLE_DEVICES", "1"}}), ElementsAre(1));
  EXPECT_THAT(count(GpuVendor::amd, {{"CUDA_VISIBLE_DEVICES", "1"}}), ElementsAre(1));
  EXPECT_THAT(count(GpuVendor::amd, {{"CUDA_VISIBLE_DEVICES", "1"}, {"HIP_VISIBLE_DEVICES", "2"}}),
              ElementsAre(2));
  EXPECT_THAT(count(GpuVendor::amd, {{"HIP_VISIBLE_DEVICES", "1"}, {"ROCR_VISIBLE_DEVICES", "2,3"}}),
              ElementsAre(3))
      << "HIP counts what ROCR leaves";
  EXPECT_THAT(count(GpuVendor::intel, {{"ZE_AFFINITY_MASK", "0.0,0.1,2"}}), ElementsAre(0, 2));
}

TEST(Usable, AProgramFailsIfItsGpusWouldBeUsed) {
  const auto fails = [](GpuFacts facts, GpuVendor vendor, GpuToolState state) {
    facts.tools.push_back({.vendor = vendor, .program = "x", .state = state});
    return find_failed_tool(facts) != nullptr;
  };
  using enum GpuToolState;
  EXPECT_EQ(find_failed_tool({}), nullptr);
  for (const GpuToolState state :
       {no_driver, version_mismatch, lost_device, no_permission, no_access, hangs, failed}) {
    EXPECT_TRUE(fails({}, GpuVendor::nvidia, state)) << static_cast<int>(state);
    EXPECT_FALSE(fails(make_gpus(1), GpuVendor::nvidia, state)) << "others answer";
    EXPECT_FALSE(fails(make_gpus(1), GpuVendor::amd, state)) << "those of NVIDIA are used";
    EXPECT_EQ(fails(make_gpus(1, GpuVendor::intel), GpuVendor::nvidia, state), state != no_driver);
  }
  EXPECT_FALSE(fails({}, GpuVendor::nvidia, answered));
  EXPECT_FALSE(fails({}, GpuVendor::nvidia, no_devices));
}

TEST(Usable, ALostGpuIsNotSeen) {
  GpuFacts facts = make_gpus(3);
  facts.gpus[0].lost = true;
  EXPECT_THAT(count_gpus(facts, {{"CUDA_VISIBLE_DEVICES", "2"}}).indices, ElementsAre(2));
  EXPECT_THAT(count_gpus(facts, {{"CUDA_VISIBLE_DEVICES", "0,1"}}).indices, IsEmpty());
}

}  // namespace
}  // namespace remote::rules
