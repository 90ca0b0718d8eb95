#include "project/lease.hpp"

#include <gmock/gmock.h>

#include "base/decimal.hpp"
#include "servers/leases.hpp"

namespace remote {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30U;

TEST(Lease, ItsTermsNameTheGpusThatMayBeTaken) {
  const wire::LeaseTerms terms = servers::to_terms({.gpus = 2, .cpus = 1, .memory = 5}, {0, 3});
  EXPECT_EQ(terms, (wire::LeaseTerms{.gpus = 2, .cpus = 1, .memory = 5, .among = {0, 3}}));
  const config::Config config = config::parse(
      "prologue: export PATH=/site\nservers:\n  a: {hostname: h, gpus: [1, 2]}\n", "/home/me/proj");
  const wire::LeaseTerms of_server = servers::to_terms({.gpus = 1}, config, config.servers.front());
  EXPECT_EQ(of_server.among, (std::vector{1, 2}));
  EXPECT_THAT(of_server.prologue, HasSubstr("export PATH=/site"));
  const wire::LeaseTerms odd = servers::to_terms({.gpus = -1, .memory = ~std::uint64_t{0}}, {});
  EXPECT_EQ(odd, (wire::LeaseTerms{.memory = std::uint64_t{wire::max_leased_memory}})) << "as in a message";
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
  found.gpus[2].processes.push_back({.pid = 10, .name = "c", .user = "carl"});
  EXPECT_EQ(
      project::lease_problem({.gpus = 2}, found)->reason(),
      "2 GPUs needed, and 1 of 4 free: ada has leased 2, processes of bob use 1, processes of carl use 1");
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

TEST(Lease, TheLimitOfAControlGroupIsNamed) {
  project::FreshLeases found{.free = {.cpus = 1,
                                      .all_cpus = 1,
                                      .server_cpus = 64,
                                      .memory = 2 * gibibyte,
                                      .all_memory = 2 * gibibyte,
                                      .server_memory = 64 * gibibyte}};
  EXPECT_EQ(project::lease_problem({.cpus = 2, .wait = true}, found)->reason(),
            "2 cores needed, and there is 1 of 64: quota of the control group");
  EXPECT_EQ(project::lease_problem({.memory = 8 * gibibyte}, found)->reason(),
            "8.0 GiB of memory needed, and there are 2.0 of 64.0: limit of the control group");
  EXPECT_FALSE(project::lease_problem({.cpus = 1, .memory = 2 * gibibyte}, found));
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
