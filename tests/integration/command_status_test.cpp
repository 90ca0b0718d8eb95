// `remote status`, and `remote` alone.

#include "support/command_world.hpp"

namespace remote::test {
namespace {

TEST(CommandStatus, ANewProjectIsToldWhatToDoFirst) {
  CommandWorld world;
  EXPECT_THAT(world.run({"status"}),
              Ends(0, "", "proj: nothing runs on 2 servers\nto make the servers ready: remote prepare\n"));
  world.configure("name: proj\n");
  EXPECT_THAT(world.run({"status"}).err, HasSubstr("remote sandbox up\n"));
  EXPECT_EQ(world.servers().commands(), 0);
}

TEST(CommandStatus, WhatRunsAndWhatEndedSinceTheLastTimeIsShown) {
  CommandWorld world;
  world.configure(
      "name: proj\npython: {manager: system}\nservers:\n  a: {hostname: a, internal_address: 127.0.0.1}\n"
      "  b: {hostname: b, internal_address: 127.0.0.1}\n");
  world.run({"launch", "--cmd", "exec sleep 1000", "--nproc-per-node", "2"});
  const Job failed = world.ended_job("a", "exit 3");
  // Without a command it is the same.
  const CommandResult first = world.run({});
  EXPECT_EQ(first.code, 0) << first;
  EXPECT_THAT(first.lines(),
              ElementsAre(HasSubstr("STATE"), HasSubstr("4 running"), HasSubstr("failed exit 3")));
  EXPECT_THAT(first.lines()[1], HasSubstr("1-4  running"));
  EXPECT_EQ(first.err,
            "proj: 4 unfinished jobs on 2 servers, 1 job ended since the last time\n"
            "to follow rank 0: remote job-tail --launch 1\n"
            "to see why job 5 on a failed: remote job-tail --job 5\n");
  const CommandResult second = world.run({"status"});
  EXPECT_EQ(second.lines().size(), 2U) << "the end of job 5 is no news";
  EXPECT_EQ(world.run({"job-kill", "--job", "1", "--job", "2", "--job", "3", "--job", "4"}).code, 0);
  const CommandResult third = world.run({"status"});
  EXPECT_THAT(third.out, AllOf(HasSubstr("1-4"), Not(HasSubstr("exit 3"))));
  EXPECT_THAT(third.err, HasSubstr("nothing runs on 2 servers, 4 jobs ended since the last time\n"
                                   "to train: remote torch-launch --rsync -- train.py\n"));
  EXPECT_EQ(world.run({"status"}).out, "");
}

TEST(CommandStatus, OutputIsNotPromisedOfAServerThatDoesNotAnswer) {
  CommandWorld world;
  world.job("a", "exec sleep 1000");
  Faults faults;
  faults.unreachable = {"a"};
  world.servers().set_faults(faults);
  const CommandResult silent = world.run({"status"});
  EXPECT_THAT(silent.out, HasSubstr("unknown"));
  EXPECT_THAT(silent.err,
              AllOf(HasSubstr("to see which servers answer: remote servers\n"), Not(HasSubstr("job-tail"))));
  world.servers().set_faults({});
  EXPECT_THAT(world.run({"status"}).err, HasSubstr("to follow it: remote job-tail --job 1\n"));
}

TEST(CommandStatus, JsonIsOneValueAndNoTelling) {
  CommandWorld world;
  world.ended_job("a", "true");
  for (int i = 0; i < 2; ++i) {  // it stays news: nobody has seen it
    const CommandResult result = world.run({"--json"});
    EXPECT_EQ(result.json()["project"], "proj") << result;
    EXPECT_EQ(result.json()["unfinished"].size(), 0U);
    ASSERT_EQ(result.json()["ended"].size(), 1U);
    EXPECT_EQ(result.json()["ended"][0]["state"], "succeeded");
    EXPECT_EQ(result.json()["next"].size(), 1U);
  }
}

TEST(CommandStatus, HiddenJobsAndThoseOfYesterdayAreNoNews) {
  CommandWorld world;
  world.ended_job("a", "true", {"--tag", "__hidden__"});
  EXPECT_EQ(world.run({"status"}).out, "");
  EXPECT_EQ(world.run({"job-list", "--stopped"}).out, "");
  EXPECT_EQ(world.run({"--json", "job-list", "--stopped", "--hidden"}).json().size(), 1U);
}

}  // namespace
}  // namespace remote::test
