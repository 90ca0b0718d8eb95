// `remote status`, and `remote` without a command.

#include "support/command_world.hpp"

namespace remote::test {
namespace {

TEST(CommandStatus, ANewProjectIsToldWhatToDoFirst) {
  CommandWorld world;
  EXPECT_THAT(world.run({"status"}),
              Ends(0, "",
                   "proj: nothing started here runs on 2 servers (jobs from elsewhere: remote servers)\nto "
                   "make the servers ready: remote prepare\n"));
  world.configure("name: proj\n");
  EXPECT_THAT(
      world.run({"status"}).err,
      AllOf(HasSubstr("to name your own servers, under `servers:`: ${EDITOR:-vi} "),
            HasSubstr("/.remote/configs.yaml'\nfor practice servers of this machine: remote sandbox up\n")));
  EXPECT_EQ(world.servers().commands(), 0);
}

TEST(CommandStatus, WhatRunsAndWhatEndedSinceTheLastTimeIsShown) {
  CommandWorld world;
  world.configure(
      "name: proj\npython: {manager: system}\nservers:\n  a: {hostname: a, internal_address: 127.0.0.1}\n"
      "  b: {hostname: b, internal_address: 127.0.0.1}\n");
  world.run({"launch", "--cmd", "exec sleep 1000", "--nproc-per-node", "2"});
  const Job failed = world.ended_job("a", "exit 3");
  // `remote` without a command prints the same.
  const CommandResult first = world.run({});
  EXPECT_EQ(first.code, 0) << first;
  EXPECT_THAT(first.lines(),
              ElementsAre(HasSubstr("STATE"), HasSubstr("4 running"), HasSubstr("failed exit 3")));
  EXPECT_THAT(first.lines()[1], HasSubstr("1-4  running"));
  EXPECT_EQ(first.err,
            "proj: 1 launch unfinished on 2 servers, 1 job ended since last time\n"
            "to follow rank 0: remote job-tail --launch 1\n"
            "to see why job 5 on a failed: remote job-tail --job 5\n");
  const CommandResult second = world.run({"status"});
  EXPECT_EQ(second.lines().size(), 2U) << "the end of job 5 is no news";
  EXPECT_EQ(world.run({"job-kill", "--job", "1", "--job", "2", "--job", "3", "--job", "4"}).code, 0);
  const CommandResult third = world.run({"status"});
  EXPECT_THAT(third.out, AllOf(HasSubstr("1-4"), Not(HasSubstr("exit 3"))));
  EXPECT_THAT(third.err, HasSubstr("nothing started here runs on 2 servers (jobs from elsewhere: remote "
                                   "servers), 1 launch ended since last time\n"
                                   "to train: remote torch-launch --rsync -- train.py\n"));
  EXPECT_EQ(world.run({"status"}).out, "");
}

TEST(CommandStatus, ALaunchIsShownWithTheRanksThatEndedBefore) {
  CommandWorld world;
  world.configure(
      "name: proj\npython: {manager: system}\nservers:\n  a: {hostname: a, internal_address: 127.0.0.1}\n");
  const auto failing = [&](const std::string& what) {
    return world.run({"launch", "--nproc-per-node", "2", "--on-failure", "leave", "--cmd", what});
  };
  ASSERT_EQ(failing("[ $RANK = 0 ] || exit 3; exec sleep 1000").code, 0);
  world.run({"job-wait", "2"});
  const CommandResult first = world.run({"status"});
  EXPECT_THAT(first.out, HasSubstr("1-2  running; rank 1 failed exit 3"));
  EXPECT_THAT(first.err, HasSubstr("proj: 1 launch unfinished on 1 server\n")) << "it has not ended";
  EXPECT_THAT(world.run({"status"}).out, HasSubstr("1-2  running; rank 1 failed exit 3"));
  world.run({"job-kill", "1"});
  EXPECT_THAT(world.run({"status"}).out, HasSubstr("2 ended"));
}

TEST(CommandStatus, ASettingThatCannotWorkIsToldFirst) {
  CommandWorld world;
  world.configure(
      "name: proj\nservers:\n  a: {hostname: a}\n  b: {hostname: b, private_key: ./.remote/key}\n");
  EXPECT_THAT(
      world.run({}).err,
      MatchesRegex(".*\nb: key [^\n]*/my project/.remote/key .configs.yaml:4.: no such file; to fix it: "
                   "\\$\\{EDITOR:-vi\\} [^\n]*\nto make the servers ready: remote prepare\n"));
  EXPECT_EQ(world.servers().commands(), 0);
}

TEST(CommandStatus, PracticeServersThatAreDownAreToldFirst) {
  CommandWorld world;
  make_folders(world.project() / ".remote/sandbox/node-1/home");
  write_file_atomic(world.project() / ".remote/sandbox/node-1/port", "2022\n");
  const std::string node = "  node-1: {hostname: 127.0.0.1, port: 2022}\n";
  world.configure("name: proj\nservers:\n" + node);
  EXPECT_EQ(world.run({}).err,
            "proj: nothing started here runs on 1 server (jobs from elsewhere: remote servers)\nsome "
            "practice servers are down; to start them: "
            "remote sandbox up\n"
            "to make the servers ready: remote prepare\n");
  // Practice servers that the project does not use are not mentioned.
  world.configure("name: proj\nservers:\n  a: {hostname: a}\n");
  EXPECT_THAT(world.run({}).err, Not(HasSubstr("sandbox up")));
}

TEST(CommandStatus, TheLaunchThatFailedLastIsToldUntilSomethingElseIsStarted) {
  CommandWorld world;
  world.configure(
      "name: proj\npython: {manager: system}\nservers:\n  a: {hostname: a, internal_address: 127.0.0.1}\n"
      "  b: {hostname: b, internal_address: 127.0.0.1}\n");
  write_file_atomic(world.project() / "fit it.py", "");
  EXPECT_EQ(world
                .run({"launch", "--follow", "--failure-grace", "0", "--cmd",
                      "[ $RANK = 0 ] || exit 3; exec sleep 1000"})
                .code,
            1);
  const auto told = HasSubstr(
      "to see why job 2 (rank 1 on b) failed: remote job-tail --job 2\n"
      "for the whole launch as one page: remote report --launch 1\n"
      "to train: remote torch-launch --rsync -- 'fit it.py'\n");
  EXPECT_THAT(world.run({}).err, told);
  EXPECT_THAT(world.run({}).err, told) << "it is no news any more, and still the next thing to look at";
  world.ended_job("a", "true");
  EXPECT_THAT(world.run({}).err, Not(HasSubstr("job 2")));
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
  for (int i = 0; i < 2; ++i) {  // it stays unread: nobody has seen it
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
