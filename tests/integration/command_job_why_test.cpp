// `remote job-why`.

#include "base/files.hpp"
#include "support/command_world.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

TEST(CommandJobWhy, WithoutARunningJobIsWrongUsage) {
  CommandWorld world;
  EXPECT_THAT(world.run({"job-why"}), Refused("job-why: no job runs\n hint: see: remote job-list --stopped"));
  world.ended_job("a", "true");
  EXPECT_THAT(world.run({"job-why", "--job", "1"}), Refused("job-why: none of these jobs is running"));
  EXPECT_EQ(world.run({"job-why", "--between", "0"}).code, 2);
  world.job("a", "sleep 1000", {"--tag", "x"});
  world.job("a", "sleep 1000", {"--tag", "x"});
  EXPECT_EQ(world.run({"job-why", "--tag", "x", "--between", "1"}).code, 0);
}

TEST(CommandJobWhy, JobsOfTwoLaunchesAreNotOneVerdict) {
  CommandWorld world;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(world.run({"launch", "--no-check", "--no-follow", "--cmd", "exec sleep 1000"}).code, 0);
  }
  EXPECT_THAT(
      world.run({"job-why", "--launch", "1", "--launch", "3"}),
      Refused(
          "job-why: these jobs belong to several launches\n hint: name one: remote job-why --launch KEY"));
}

TEST(CommandJobWhy, AProgramThatIsNotPythonIsJudgedByTheKernel) {
  CommandWorld world;
  const auto job = world.job("a", "sleep 1000");
  CommandResult result;
  until(
      [&] {
        result = world.run({"job-why", "--between", "1", "--json"});
        return result.code == 0 && result.json()["groups"].at(0)["doing"] == "sleeping";
      },
      "the sleep is seen");
  const auto json = result.json();
  EXPECT_EQ(json["kind"], "standing");
  const auto rank = json["groups"].at(0)["ranks"].at(0);
  EXPECT_EQ(rank["job"], 1);
  EXPECT_EQ(rank["server"], "a");
  EXPECT_EQ(rank["moved"], false);
  EXPECT_EQ(json["errors"], nlohmann::json::array());
}

// The diagnosis that the lifeline kept when the launch hung is shown after the launch has ended.
TEST(CommandJobWhy, WhatWasKeptIsShownWhenTheLaunchHasEnded) {
  CommandWorld world;
  const CommandResult launched = world.run({"launch", "--no-check", "--server", "a", "--hang-after", "0.03",
                                            "--on-hang", "kill", "--follow", "--cmd", "exec sleep 1000"});
  EXPECT_EQ(launched.code, 1);
  EXPECT_THAT(launched.err, HasSubstr("hung: ended after"));
  const CommandResult why = world.run({"job-why", "--launch", "1"});
  EXPECT_EQ(why.code, 0) << why;
  EXPECT_THAT(why.out, AllOf(HasSubstr("as it was at "), HasSubstr("sleeps")));
  const Job job = world.stored(1);
  EXPECT_EQ(job.reason.kind, JobReason::Kind::after_hang);
  EXPECT_TRUE(job.hung && job.hung->stood >= std::chrono::seconds(1));
  world.ended_job("a", "true");
  EXPECT_THAT(world.run({"job-why", "--kept", "--job", "2"}), Refused("these jobs did not hang"));
}

TEST(CommandJobWhy, AServerThatIsNotReachedIsAFailure) {
  CommandWorld world;
  world.job("a", "sleep 1000");
  world.cut_off({"a"});
  const CommandResult result = world.run({"job-why", "--between", "1"});
  EXPECT_EQ(result.code, 1) << result;
  EXPECT_THAT(result.out, HasSubstr("the reason is unknown"));
  EXPECT_THAT(result.err, HasSubstr("a: "));
}

}  // namespace
}  // namespace remote::test
