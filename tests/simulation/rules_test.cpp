#include <gtest/gtest.h>

#include "rules/first_cause.hpp"
#include "rules/leases.hpp"

namespace remote::rules {
namespace {

using std::chrono::seconds;

FailureFacts failure(int rank, std::optional<Moment> at, bool after_peer = false) {
  return {at, rank, after_peer, false, false};
}

TEST(FirstFailure, IsTheEarliestThatDoesNotFollowFromAPeers) {
  EXPECT_FALSE(find_first_failure({}));
  const std::vector all = {failure(0, seconds(10), true), failure(1, seconds(12)), failure(2, seconds(13))};
  EXPECT_EQ(find_first_failure(all), 1U);
}

TEST(FirstFailure, IsNotOneThatCameTooLateToBeTheCause) {
  const std::vector all = {failure(0, seconds(10), true), failure(1, seconds(16))};
  EXPECT_EQ(find_first_failure(all), 0U);
}

TEST(FirstFailure, HasAKnownTimeIfAnyHas) {
  EXPECT_EQ(find_first_failure(std::vector{failure(0, std::nullopt), failure(1, seconds(9))}), 1U);
  EXPECT_EQ(find_first_failure(std::vector{failure(1, seconds(9), true), failure(0, std::nullopt)}), 1U);
}

TEST(FirstFailure, PrefersReportedEndsThenSignalsThenLowRanks) {
  FailureFacts gone = failure(0, seconds(9));
  gone.found_gone = true;
  FailureFacts signalled = failure(2, seconds(9));
  signalled.signalled = true;
  EXPECT_EQ(find_first_failure(std::vector{gone, failure(1, seconds(9))}), 1U);
  EXPECT_EQ(find_first_failure(std::vector{failure(1, seconds(9)), signalled}), 1U);
  EXPECT_EQ(find_first_failure(std::vector{failure(3, seconds(9)), failure(1, seconds(9))}), 1U);
}

TEST(FollowsStop, WithinTheDelay) {
  const StopFacts stop{seconds(20), seconds(25)};
  EXPECT_TRUE(follows_stop(failure(0, seconds(22)), stop));
  EXPECT_TRUE(follows_stop(failure(0, seconds(30)), stop));
  EXPECT_FALSE(follows_stop(failure(0, seconds(31)), stop));
  EXPECT_TRUE(follows_stop(failure(0, seconds(99), true), stop));
  EXPECT_FALSE(follows_stop(failure(0, seconds(14), true), stop));
  EXPECT_FALSE(follows_stop(failure(0, seconds(19)), stop));
  EXPECT_TRUE(follows_stop(failure(0, seconds(20) - Moment(250)), stop));
}

TEST(LostServer, IsTheOneThatMostAccuse) {
  EXPECT_EQ(find_lost_server({}, {}), "");
  // n7 was cut off, and considers the first server lost.
  EXPECT_EQ(find_lost_server({{"n5", "n7"}, {"n6", "n7"}, {"n7", "n5"}, {"n8", "n7"}}, {}), "n7");
  EXPECT_EQ(find_lost_server({{"n7", "n5"}, {"n5", "n7"}}, {}), "n5");
  EXPECT_EQ(find_lost_server({{"n7", "n5"}}, {"n5"}), "n7");
  EXPECT_EQ(find_lost_server({{"n5", "n6"}, {"n7", "n7"}}, {}), "n7");
}

TEST(LeaseFile, RefusesWhatNoMachineHas) {
  const LeaseFile file{LeaseState::waiting, 12, 4, std::uint64_t{1} << 30, {"GPU-1", "amd:2"}};
  EXPECT_EQ(parse_lease_file(format_lease_file(file)), file);
  for (const char* text : {"", "remote-lease1 1 1 1", "remote-lease1 1 2147483648 1 state:held",
                           "remote-lease1 x 1 1 state:held", "remote-lease1 1 1 1 state:other",
                           "remote-lease1 1 1 1 state:held GPU/1", "remote-lease1  1 1 1 state:held",
                           "remote-lease1 -1 1 1 state:held", "remote-lease2 1 1 1 state:held",
                           "remote-lease1 99999999999999999999999 1 1 state:held"}) {
    EXPECT_FALSE(parse_lease_file(text)) << text;
  }
  std::string many = "remote-lease1 1 1 1 state:held";
  for (int i = 0; i < 129; ++i) {
    many += " g";
  }
  EXPECT_FALSE(parse_lease_file(many));
}

TEST(LeaseSurvey, CountsWhatOthersHoldAndWhoCameFirst) {
  const LeaseMachine machine{{{0, "g0"}, {1, "g1"}, {2, "g2", true}, {3, "g3"}}, 8, 100, 60};
  const std::vector<LeaseEntry> others = {{{LeaseState::held, 1, 2, 10, {"g0"}}, "x"},
                                          {{LeaseState::claimed, 2, 1, 5, {}}, "y"},
                                          {{LeaseState::waiting, 5, 0, 0, {}}, "z"},
                                          {{LeaseState::announced, 3, 0, 0, {}}, "w"}};
  const LeaseSurvey survey(machine, others, {2, 5, 60, std::nullopt});
  EXPECT_TRUE(survey.is_enough());  // g1 and g3, 5 of 8 cores, 60 bytes
  EXPECT_EQ(survey.free_gpus().size(), 2U);
  EXPECT_EQ(survey.free_cpus(), 5U);
  EXPECT_EQ(survey.free_memory(), 60U);
  EXPECT_TRUE(survey.has_earlier_waiter(6, "a"));
  EXPECT_FALSE(survey.has_earlier_waiter(4, "a"));  // an entry that is only announced blocks no other
  EXPECT_EQ(survey.position(6, "a"), 3U);
  EXPECT_TRUE(survey.has_earlier_claim(3, "a"));
  EXPECT_FALSE(survey.has_earlier_claim(1, "a"));
  EXPECT_FALSE(LeaseSurvey(machine, others, {3, 0, 0, std::nullopt}).is_enough());
  EXPECT_FALSE(LeaseSurvey(machine, others, {1, 0, 0, std::set{0}}).is_enough());
  EXPECT_TRUE(LeaseSurvey(machine, others, {5, 0, 0, std::nullopt}).is_never_enough());
  EXPECT_TRUE(LeaseSurvey(machine, others, {0, 9, 0, std::nullopt}).is_never_enough());
}

// Other users have their own control groups, and all users share the processors.
TEST(LeaseSurvey, TheLimitOfAControlGroupIsForTheJobsOfItsUser) {
  LeaseMachine machine{{}, 64, 1000, 1000};
  machine.limits = {.uid = 7, .cpus = 4, .memory = 100};
  const std::vector<LeaseEntry> others = {{{LeaseState::held, 1, 32, 500, {}}, "x", 8},
                                          {{LeaseState::held, 2, 1, 40, {}}, "y", 7}};
  const LeaseSurvey survey(machine, others, {0, 3, 60, std::nullopt});
  EXPECT_EQ(survey.all_cpus(), 4U);
  EXPECT_EQ(survey.free_cpus(), 3U);
  EXPECT_EQ(survey.all_memory(), 100U);
  EXPECT_EQ(survey.free_memory(), 60U);
  EXPECT_TRUE(survey.is_enough());
  EXPECT_FALSE(LeaseSurvey(machine, others, {0, 4, 0, std::nullopt}).is_enough());
  EXPECT_FALSE(LeaseSurvey(machine, others, {0, 4, 0, std::nullopt}).is_never_enough());
  EXPECT_TRUE(LeaseSurvey(machine, others, {0, 5, 0, std::nullopt}).is_never_enough());
  EXPECT_TRUE(LeaseSurvey(machine, others, {0, 0, 101, std::nullopt}).is_never_enough());
  const std::vector<LeaseEntry> most = {{{LeaseState::held, 1, 62, 0, {}}, "x", 8}};
  EXPECT_EQ(LeaseSurvey(machine, most, {0, 1, 0, std::nullopt}).free_cpus(), 2U);
}

TEST(LeaseSurvey, LeavesNothingIfOthersClaimMoreThanThereIs) {
  const LeaseMachine machine{{}, 8, 100, 100};
  const LeaseSurvey survey(machine, {{{LeaseState::held, 1, 1'000'000, 1000, {}}, "x"}},
                           {0, 1, 0, std::nullopt});
  EXPECT_EQ(survey.free_cpus(), 0U);
  EXPECT_EQ(survey.free_memory(), 0U);
  EXPECT_FALSE(survey.is_enough());
}

}  // namespace
}  // namespace remote::rules
