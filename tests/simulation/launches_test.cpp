#include <array>

#include <gtest/gtest.h>

#include "launch_world.hpp"
#include "seeds.hpp"

namespace remote::simulation {
namespace {

constexpr std::array fatal_troubles{Trouble::failed_rank,  Trouble::failed_in_cut, Trouble::lost_member,
                                    Trouble::lost_first,   Trouble::long_cut,      Trouble::long_pause,
                                    Trouble::dead_watchers};

LaunchOptions choose_options(std::uint64_t seed) {
  LaunchOptions options;
  options.servers = 2 + seed % 4;
  options.peers_notice = seed / 4 % 2 == 1;
  options.is_calm = seed / 8 % 4 == 3;
  options.trouble = seed % 3 == 0 ? Trouble::harmless : fatal_troubles.at(seed / 3 % fatal_troubles.size());
  options.grace = Seconds(seed % 5 == 0 ? 0 : 2);
  options.timeout = Seconds(seed / 32 % 2 == 0 ? 6 : 20);
  return options;
}

// The first violation with a seed below `seeds`; "" if there is none.
std::string find_violation(std::uint64_t seeds, Rule without) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    LaunchOptions options = choose_options(seed);
    options.without = without;
    const std::string violation = LaunchWorld(seed, options).play();
    if (!violation.empty()) {
      return "seed " + std::to_string(seed) + ": " + violation;
    }
  }
  return "";
}

TEST(SimulatedLaunches, EndWhenTheyMustAndOnlyThen) {
  EXPECT_EQ(find_violation(count_seeds(), Rule::none), "");
}

class LeftOutRule : public testing::TestWithParam<Rule> {};

TEST_P(LeftOutRule, IsFound) {
  const std::string violation = find_violation(1000, GetParam());
  EXPECT_NE(violation, "");
  RecordProperty("violation", violation);
}

INSTANTIATE_TEST_SUITE_P(SimulatedLaunches, LeftOutRule,
                         testing::Values(Rule::report_again, Rule::discount_pauses, Rule::read_journal,
                                         Rule::notice_silence, Rule::tell_late_comers, Rule::wait_for_members,
                                         Rule::stop_leftovers, Rule::await_answer));

TEST(SimulatedLaunches, OfThousandsOfServers) {
  LaunchOptions options{.servers = 2000, .ranks = 1, .timeout = Seconds(60)};
  EXPECT_EQ(LaunchWorld(1, options).play(), "");
  options.servers = 10'000;
  options.trouble = Trouble::failed_rank;
  EXPECT_EQ(LaunchWorld(1, options).play(), "");
}

}  // namespace
}  // namespace remote::simulation
