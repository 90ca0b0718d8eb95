#include "project/lease.hpp"

#include <gmock/gmock.h>

#include "base/decimal.hpp"
#include "servers/facts.hpp"

namespace remote {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30U;

servers::FactsAnswer parse(const std::string& lines) {
  return servers::read_answer(lines + "@remote1 end\n", servers::FactsAnswer());
}

TEST(Lease, IsReadFromWhatAServerSays) {
  const servers::FactsAnswer answer = parse(
      "@remote1 facts lease ada 0 4 1024 GPU-1 amd:77\n@remote1 facts lease bob 1 0 0 GPU-2\n"
      "@remote1 facts waiting carl 0\n@remote1 facts free 3 8 2 4 10 20\n");
  ASSERT_EQ(answer.leases.size(), 3U);
  EXPECT_EQ(answer.leases[0].user, "ada");
  EXPECT_EQ(answer.leases[0].cpus, 4);
  EXPECT_EQ(answer.leases[0].memory, 1024U);
  EXPECT_THAT(answer.leases[0].gpus, ElementsAre("GPU-1", "amd:77"));
  EXPECT_TRUE(answer.leases[1].own);
  EXPECT_TRUE(answer.leases[2].waits);
  EXPECT_EQ(answer.free->gpus, 3);
  EXPECT_EQ(answer.free->all_memory, 20U);
  EXPECT_EQ(parse("@remote1 facts noleases no folder\n").no_leases, "no folder");
  for (const char* wrong : {"lease ada 2 0 0", "lease ada 0 -1 0", "lease a/b 0 0 0", "lease ada 0 0 0 ../x",
                            "free 1 2 3", "waiting"}) {
    EXPECT_THROW(parse(std::string("@remote1 facts ") + wrong + "\n"), Error) << wrong;
  }
}

TEST(Lease, ItsWordsNameTheGpusThatMayBeTaken) {
  EXPECT_THAT(servers::lease_words({.gpus = 2, .cpus = 1, .memory = 5}, {0, 3}),
              ElementsAre("gpus=2", "cpus=1", "memory=5", "among=0,3"));
  EXPECT_THAT(servers::lease_words({.gpus = 2}, {}), ElementsAre("gpus=2", "cpus=0", "memory=0"));
}

TEST(Lease, TooFewFreeGpusSayWhoHasThem) {
  project::FreshLeases found{.free = {.gpus = 1, .all_gpus = 4}};
  found.leases = {{.user = "ada", .gpus = {"GPU-0", "GPU-1"}}};
  for (int i = 0; i < 4; ++i) {
    found.gpus.push_back({.index = i, .uuid = "GPU-" + std::to_string(i)});
  }
  found.gpus[1].processes = {{.pid = 7, .name = "a", .user = "ada"}};
  found.gpus[2].processes = {{.pid = 8, .name = "b", .user = "bob"}, {.pid = 9, .name = "b", .user = "bob"}};
  const auto problem = project::lease_problem({.gpus = 2}, found);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->reason(), "2 GPUs needed, and 1 of 4 free: ada has leased 2, processes of bob use 1");
  EXPECT_EQ(problem->remedy(), Remedy::wait_for_turn);
  EXPECT_FALSE(project::lease_problem({.gpus = 1}, found));
  EXPECT_FALSE(project::lease_problem({.gpus = 2, .wait = true}, found));
  const auto never = project::lease_problem({.gpus = 5, .wait = true}, found);
  EXPECT_EQ(never->reason(), "5 GPUs needed, and there are 4");
  EXPECT_EQ(never->remedy(), Remedy::none) << "waiting helps nothing";
  found.leases.push_back({.user = "carl", .waits = true});
  EXPECT_THAT(project::lease_problem({.gpus = 1}, found)->reason(), HasSubstr("another launch waits"));
}

TEST(Lease, CoresAndMemoryAreCounted) {
  project::FreshLeases found{
      .free = {.cpus = 1, .all_cpus = 4, .memory = gibibyte, .all_memory = 8 * gibibyte}};
  found.leases = {{.user = "ada", .cpus = 3, .memory = 6 * gibibyte}};
  EXPECT_EQ(project::lease_problem({.cpus = 2}, found)->reason(),
            "2 cores needed, and 1 of 4 free: ada has leased 3");
  EXPECT_EQ(project::lease_problem({.memory = 2 * gibibyte}, found)->reason(),
            "2.0 GiB of memory needed, and 1.0 of 8.0 free: ada has leased 6 GiB");
  EXPECT_EQ(project::lease_problem({.memory = 9 * gibibyte}, found)->reason(),
            "9.0 GiB of memory needed, and there are 8.0");
}

TEST(Lease, WhatCannotBeMeantIsRefused) {
  EXPECT_THROW(project::check_lease({.wait = true}, {}, "launch"), Error);
  EXPECT_THROW(project::check_lease({.gpus = 1}, {{"CUDA_VISIBLE_DEVICES", "0"}}, "launch"), Error);
  EXPECT_NO_THROW(project::check_lease({.cpus = 1}, {{"CUDA_VISIBLE_DEVICES", "0"}}, "launch"));
}

TEST(Lease, SizesAreByPowersOf1024) {
  EXPECT_EQ(parse_size("64G"), 64 * gibibyte);
  EXPECT_EQ(parse_size("500 MiB"), std::uint64_t{500} << 20U);
  EXPECT_EQ(parse_size("1.5t"), std::uint64_t{1536} << 30U);
  EXPECT_EQ(parse_size("17"), 17U);
  for (const char* wrong : {"", "G", "-1G", "5X", "5GG", "1e30", "5 G B"}) {
    EXPECT_FALSE(parse_size(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace remote
